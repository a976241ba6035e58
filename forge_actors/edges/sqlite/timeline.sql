-- What a timeline tells of jobs beyond their events.

-- name: past_facts
-- Of the jobs with these ids, given as one JSON array.
SELECT id, repo, name, kind, provider, state, attempt, created_at, queued_at,
    dispatched_at, started_at, finished_at,
    json_extract(CAST(receipt AS TEXT), '$.exit_code'), held_at
FROM job WHERE id IN (SELECT value FROM json_each(?));

-- name: still_facts
-- A page of those that have not ended, behind one of a repository.
SELECT id, repo, name, kind, provider, state, attempt, created_at, queued_at,
    dispatched_at, started_at, finished_at, NULL, held_at
FROM job WHERE finished_at IS NULL AND (repo, id) > (?, ?)
ORDER BY repo, id LIMIT ?;
