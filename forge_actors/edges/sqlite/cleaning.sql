-- What the clean-up reads, and what the owner of the store does for it.

-- name: clean_classes
SELECT name, visited_at, cursor FROM clean_class;

-- name: history_range
-- The first number there is, and that of the last row.
SELECT min(first), max(first) FROM history;

-- name: oldest_ended
-- Ended jobs behind a place, the oldest first: those with at least ?1 newer ones in their
-- repository, those that ended at ?2 or before, or with ?3 all of them.
SELECT id, repo, finished_at, newer FROM (
    SELECT id, repo, finished_at, row_number() OVER (
        PARTITION BY repo ORDER BY finished_at DESC, id DESC) - 1 AS newer
    FROM job WHERE finished_at IS NOT NULL)
WHERE (newer >= ?1 OR finished_at <= ?2 OR ?3) AND (finished_at, id) > (?4, ?5)
ORDER BY finished_at, id LIMIT ?6;

-- name: oldest_end
-- The first end of a job after a moment.
SELECT min(finished_at) FROM job WHERE finished_at > ?;

-- name: job_references
-- Of the jobs among these ids, given as one JSON array, those that something refers to,
-- why they stay, and the job that does it, if it is one that may go itself.
SELECT value, 'a job that waits comes after it', NULL
FROM job, json_each(job.after)
WHERE finished_at IS NULL AND after <> '[]'
    AND value IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT retry_of, 'another job was made from it', id FROM job
WHERE retry_of IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT child, 'another job has handed its work to it', id FROM job
WHERE child IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT id, 'its worktree is there', NULL FROM worktree
WHERE state <> 'removed' AND id IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT job, 'claims are kept for what it left', NULL FROM quarantine
WHERE job IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT job, 'it was set aside', NULL FROM poison
WHERE job IN (SELECT value FROM json_each(?1));

-- name: known_jobs
-- Of these ids, given as one JSON array, those that are jobs, and when they ended.
SELECT id, finished_at FROM job WHERE id IN (SELECT value FROM json_each(?));

-- name: repository_paths
-- Of all repositories there are and ever were.
SELECT path FROM repository;

-- name: removed_repositories
SELECT id, removed_at FROM repository AS gone
WHERE removed_at IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM job WHERE job.repo = gone.id AND finished_at IS NULL)
    AND NOT EXISTS (
        SELECT 1 FROM worktree WHERE worktree.repo = gone.id AND state <> 'removed')
    AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.repo = gone.id);

-- name: history_moment
-- When the first event came of the row that holds this one.
SELECT json_extract(CAST(events AS TEXT), '$[0].at') FROM history
WHERE first <= ? ORDER BY first DESC LIMIT 1;
