-- Runs of EPICs. Their ids begin with their time.

-- name: save_epic
INSERT INTO epic_run (id, active, request, target, needs, body)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    active = excluded.active, needs = excluded.needs, body = excluded.body;

-- name: forget_epics
DELETE FROM epic_run WHERE active = 0 AND id IN (
    SELECT id FROM epic_run WHERE active = 0 ORDER BY id DESC LIMIT -1 OFFSET ?
);

-- name: epic
SELECT body FROM epic_run WHERE id = ?;

-- name: epic_goes_on
SELECT id, active FROM epic_run WHERE id = ?;

-- name: active_epics
SELECT id FROM epic_run WHERE active = 1 ORDER BY id;

-- name: epic_of_request
SELECT id FROM epic_run WHERE request = ?;

-- name: epics
SELECT id, body FROM epic_run WHERE id < ?1 ORDER BY id DESC LIMIT ?2;

-- name: epics_active
SELECT id, body FROM epic_run WHERE active = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2;

-- name: epics_in_need
-- Those that somebody has to look at, but for EPICs that were begun again since.
SELECT id, (SELECT name FROM repository
    WHERE repository.id = substr(target, 1, instr(target, ' ') - 1)), body
FROM epic_run
WHERE needs = 1 AND NOT EXISTS (
    SELECT 1 FROM epic_run AS later
    WHERE later.target = epic_run.target AND later.id > epic_run.id)
ORDER BY id DESC LIMIT ?;

-- name: epics_meant
SELECT id FROM epic_run WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id DESC LIMIT 2;
