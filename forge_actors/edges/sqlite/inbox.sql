-- What the inbox is made of: everything that needs a person.

-- name: attention_ids
-- The jobs that ended so that a person has to look, and that nobody retried; newest
-- first. Without an index, as one of the states would cost every move of every job.
SELECT id FROM job WHERE state = 'human_attention_required' AND NOT EXISTS (
    SELECT 1 FROM job AS again WHERE again.retry_of = job.id)
ORDER BY id DESC;

-- name: stuck_worktrees
-- Those that were to be removed and could not be.
SELECT worktree.id, repository.name, branch, worktree.path, reason, made_at
FROM worktree JOIN repository ON repository.id = worktree.repo
WHERE worktree.state IN ('ready', 'removing') AND reason IS NOT NULL AND NOT kept
ORDER BY made_at, worktree.id;

-- name: answer_job
-- waiting -> queued: what it asked was answered
UPDATE job SET state = 'queued', error = NULL, spec = ?
WHERE id = ? AND state = 'waiting_for_approval';

-- name: approve_job
-- waiting -> waiting: a person has allowed what it does to the outside
UPDATE job SET state = ?, spec = ?
WHERE id = ? AND state = 'waiting_for_approval';

-- name: refuse_effects
UPDATE job SET refused_effects = ? WHERE id = ?;

-- name: kept_from_effects
-- Jobs that were kept from effects, and that nobody retried; newest first.
SELECT id FROM job WHERE refused_effects IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM job AS again WHERE again.retry_of = job.id)
ORDER BY id DESC LIMIT ?;

-- name: webhooks
SELECT name, after, target, failing_since, detail, closed FROM webhook ORDER BY name;

-- name: keep_webhook
INSERT OR REPLACE INTO webhook (name, after, target, failing_since, detail, closed)
VALUES (?, ?, ?, ?, ?, ?);

-- name: inbox_marks
SELECT item, dismissed_at, notified_at FROM inbox;

-- name: mark_item
INSERT INTO inbox (item, dismissed_at, notified_at) VALUES (?1, ?2, ?3)
ON CONFLICT (item) DO UPDATE SET
    dismissed_at = coalesce(excluded.dismissed_at, dismissed_at),
    notified_at = coalesce(excluded.notified_at, notified_at);

-- name: forget_marks
-- The oldest, once there are more than so many.
DELETE FROM inbox WHERE item IN (
    SELECT item FROM inbox ORDER BY max(
        coalesce(dismissed_at, 0), coalesce(notified_at, 0)) DESC
    LIMIT -1 OFFSET ?);
