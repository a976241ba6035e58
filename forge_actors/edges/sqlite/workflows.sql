-- Workflows and their steps.

-- name: add_workflow
INSERT INTO workflow (id, name, state, request, definition, body)
VALUES (?, ?, ?, ?, ?, ?);

-- name: save_workflow
UPDATE workflow SET state = ?2, body = ?3 WHERE id = ?1;

-- name: save_step
INSERT INTO workflow_step (id, number, body) VALUES (?, ?, ?)
ON CONFLICT (id) DO UPDATE SET body = excluded.body;

-- Ids begin with their time, so the newest are the largest.
-- name: old_workflows
SELECT id FROM workflow WHERE state NOT IN ('running', 'paused', 'cancelling')
ORDER BY id DESC LIMIT -1 OFFSET ?;

-- name: forget_workflow
DELETE FROM workflow WHERE id = ?;

-- A digit comes right behind the slash.
-- name: forget_steps
DELETE FROM workflow_step WHERE id > ?1 || '/' AND id < ?1 || '0';

-- name: workflow
SELECT definition, body FROM workflow WHERE id = ?;

-- name: workflow_steps
SELECT body FROM workflow_step
WHERE id > ?1 || '/' AND id < ?1 || '0' ORDER BY number;

-- name: workflow_state
SELECT state FROM workflow WHERE id = ?;

-- name: active_workflows
SELECT id FROM workflow WHERE state IN ('running', 'paused', 'cancelling') ORDER BY id;

-- name: workflows
SELECT id, body FROM workflow WHERE id < ?1 ORDER BY id DESC LIMIT ?2;

-- name: workflows_in_state
SELECT id, body FROM workflow WHERE state = ?3 AND id < ?1 ORDER BY id DESC LIMIT ?2;

-- name: workflows_meant
SELECT id FROM workflow WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id DESC LIMIT 2;

-- name: workflow_of_request
SELECT id FROM workflow WHERE request = ?;

-- name: workflow_named
SELECT id FROM workflow WHERE name = ? ORDER BY id DESC LIMIT 1;
