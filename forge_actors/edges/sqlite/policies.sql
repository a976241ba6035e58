-- Where nothing starts because somebody says so: pauses, closed accounts, the policy.

-- name: set_policy
INSERT OR REPLACE INTO policy (one, mode, work, reason, since, until, revision)
VALUES (1, ?, ?, ?, ?, ?, ?);

-- name: policy
SELECT mode, work, reason, since, until, revision FROM policy;

-- name: job_of_work
SELECT id FROM job WHERE work = ? LIMIT 1;

-- name: jobs_of_work
SELECT id, state FROM job WHERE work = ? ORDER BY id;

-- name: works_of
-- Of the jobs among these ids, given as one JSON array, that are of one.
SELECT id, work FROM job
WHERE work IS NOT NULL AND id IN (SELECT value FROM json_each(?));

-- name: set_work
UPDATE job SET work = ? WHERE id = ?;
