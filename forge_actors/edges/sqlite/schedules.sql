-- Schedules and what became of their windows.

-- name: schedules
SELECT id, name, body FROM schedule ORDER BY name;

-- name: save_schedule
INSERT INTO schedule (id, name, body) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET name = excluded.name, body = excluded.body;

-- name: remove_schedule
DELETE FROM schedule WHERE id = ?;

-- name: remove_occurrences
DELETE FROM occurrence WHERE schedule = ?;

-- name: save_occurrence
INSERT OR REPLACE INTO occurrence (
    id, schedule, window, due, decided, decision, reason, job, count
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: trim_occurrences
-- Behind the newest ones, at most one goes for each that comes.
DELETE FROM occurrence WHERE id IN (
    SELECT id FROM occurrence WHERE schedule = ?1 ORDER BY due DESC LIMIT 2 OFFSET ?2
);

-- name: occurrences
SELECT id, schedule, window, due, decided, decision, reason, job, count
FROM occurrence WHERE schedule = ? ORDER BY due DESC, decided DESC LIMIT ?;

-- name: occurrence
SELECT 1 FROM occurrence WHERE id = ?;

-- name: request_job
-- The job of a request id: as it is, or as it was before retention removed it.
SELECT id FROM job WHERE request_id = ?1
UNION ALL SELECT job FROM forgotten WHERE request_id = ?1 LIMIT 1;

-- name: job_traits
SELECT kind, name, labels, origin, coalesce((
    SELECT json_extract(CAST(body AS TEXT), '$.origin') FROM workflow
    WHERE workflow.id = job.work AND json_valid(CAST(body AS TEXT))
), '') FROM job WHERE id = ?;

-- name: release_gate
-- One that has not ended.
SELECT id FROM job
WHERE repo = ? AND finished_at IS NULL AND kind = 'release-gate' LIMIT 1;

-- name: job_forgotten
SELECT 1 FROM forgotten WHERE job = ?;

-- name: window_of
-- The window of a schedule that has this job.
SELECT window FROM job JOIN occurrence ON occurrence.id = job.request_id
WHERE job.id = ?;

-- name: job_ran
SELECT coalesce(finished_at - started_at, 0.0) FROM job WHERE id = ?;
