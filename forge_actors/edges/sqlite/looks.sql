-- The looks at the checkouts of repositories.

-- name: save_look
-- Of a repository that is not removed.
INSERT OR REPLACE INTO git_status (
    repo, sample, sampled_at, busy, fence, nonce, looked_at, dirty_nonce, dirty_reason,
    dirty_at, dirty_source, failures, error, retry_at
)
SELECT id, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
FROM repository WHERE id = ? AND removed_at IS NULL;

-- name: forget_look
DELETE FROM git_status WHERE repo = ?;

-- name: look
SELECT repo, sample, sampled_at, busy, fence, nonce, looked_at, dirty_nonce, dirty_reason,
    dirty_at, dirty_source, failures, error, retry_at
FROM git_status WHERE repo = ?;

-- name: looks
SELECT repo, sample, sampled_at, busy, fence, nonce, looked_at, dirty_nonce, dirty_reason,
    dirty_at, dirty_source, failures, error, retry_at
FROM git_status;

-- name: unfinished_looks
-- Marked, or jobs may have changed something since: they ran then, or began later.
SELECT id, sample, sampled_at, coalesce(busy, 0), coalesce(git_status.fence, 0),
    coalesce(nonce, 0), coalesce(looked_at, 0), dirty_nonce, dirty_reason, dirty_at,
    dirty_source, coalesce(failures, 0), error, retry_at
FROM repository LEFT JOIN git_status ON repo = id
WHERE removed_at IS NULL AND (
    dirty_nonce IS NOT NULL OR busy = 1
    OR repository.fence > coalesce(git_status.fence, 0)
);

-- name: oldest_look
-- Those that were never looked at come first.
SELECT id FROM repository LEFT JOIN git_status ON repo = id
WHERE removed_at IS NULL ORDER BY coalesce(looked_at, 0), id LIMIT 1;

-- name: attention_of
-- The newest jobs of a repository that need a person. Not with IN, see `job`.
SELECT id, state, finished_at FROM job
WHERE repo = ? AND (
    state = 'human_attention_required' OR state = 'orphaned' OR state = 'stale'
) ORDER BY id DESC LIMIT ?;

-- name: leases_of
-- Of the jobs among these ids, given as one JSON array.
SELECT id, fence, claims FROM job
WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id;

-- name: fences
SELECT id, fence FROM repository WHERE removed_at IS NULL;
