-- Controllers and their wakes.

-- name: controllers
SELECT id, name, body FROM controller ORDER BY name;

-- name: controllers_that_wait
-- Those that wait for a person.
SELECT id, name, body FROM controller
WHERE state IN ('waiting_for_user', 'quarantined') ORDER BY name;

-- name: save_controller
INSERT INTO controller (id, name, state, body) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body;

-- name: remove_controller
DELETE FROM controller WHERE id = ?;

-- name: wake
SELECT body FROM wake WHERE id = ?;

-- name: wakes
SELECT body FROM wake WHERE controller = ? ORDER BY number DESC LIMIT ?;

-- name: open_wakes
SELECT body FROM wake WHERE controller = ? AND state IN ('prepared', 'dispatching')
ORDER BY number;

-- name: save_wake
INSERT INTO wake (id, controller, number, state, body) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body;

-- name: trim_wakes
-- Behind the newest ones, at most one goes for each that comes.
DELETE FROM wake WHERE id IN (
    SELECT id FROM wake WHERE controller = ?1 ORDER BY number DESC LIMIT 2 OFFSET ?2
);

-- name: remove_wakes
DELETE FROM wake WHERE controller = ?;

-- name: last_of_others
-- The job of a repository that ended last, but for those that were woken for a
-- controller. Ids begin with their time, so it is looked for among the newest ones.
SELECT max(finished_at) FROM (
    SELECT id, finished_at FROM job WHERE repo = ?1 ORDER BY id DESC LIMIT 200
) WHERE finished_at IS NOT NULL
AND id NOT IN (SELECT json_extract(CAST(body AS TEXT), '$.job') FROM wake
               WHERE controller = ?2 AND json_extract(CAST(body AS TEXT), '$.job')
               IS NOT NULL) AND id IS NOT ?3;
