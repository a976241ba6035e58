-- Workflows and their steps.

-- name: add_workflow
INSERT INTO workflow (id, name, state, request, definition, body)
VALUES (?, ?, ?, ?, ?, ?);

-- name: save_workflow
UPDATE workflow SET state = ?2, body = ?3 WHERE id = ?1;

-- name: save_step
INSERT INTO workflow_step (id, number, state, body) VALUES (?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, body = excluded.body;

-- Those that ended last stay, however early they began. One whose end cannot be read is
-- for somebody to look at.
-- name: old_workflows
SELECT id FROM workflow WHERE state NOT IN ('running', 'paused', 'cancelling')
ORDER BY coalesce(
    CASE WHEN json_valid(CAST(body AS TEXT))
        THEN json_extract(CAST(body AS TEXT), '$.ended') END,
    1e18
) DESC, id DESC
LIMIT -1 OFFSET ?;

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

-- name: asking_steps
-- The steps that ask a person something, in workflows that have not ended.
SELECT workflow.id, workflow.name, workflow_step.body
FROM workflow_step
JOIN workflow ON workflow.id = substr(workflow_step.id, 1, instr(workflow_step.id, '/') - 1)
WHERE workflow_step.state = 'asking'
    AND workflow.state IN ('running', 'paused', 'cancelling')
ORDER BY workflow_step.id;

-- name: needing_workflows
-- Those that stopped so that a person has to look, the newest first.
SELECT id, name, body FROM workflow
WHERE state IN ('human_attention_required', 'quarantined') ORDER BY id DESC;

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
