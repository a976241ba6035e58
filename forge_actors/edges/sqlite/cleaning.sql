-- What the clean-up reads, and what the owner of the store does for it.

-- name: clean_classes
SELECT name, visited_at, cursor FROM clean_class;

-- name: clean_visits
SELECT name, visited_at, cursor, report, size FROM clean_class;

-- name: keep_visit
INSERT OR REPLACE INTO clean_class (name, visited_at, cursor, report, size)
VALUES (?, ?, ?, ?, ?);

-- name: clean_run
SELECT began_at, ended_at, looked_at, runs, failures, in_a_row, removed, bytes, error,
    more, due_at
FROM clean_run;

-- name: keep_run
INSERT OR REPLACE INTO clean_run (
    one, began_at, ended_at, looked_at, runs, failures, in_a_row, removed, bytes, error,
    more, due_at
) VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: forgettable
-- Of the jobs among these ids, given as one JSON array, those that ended before a moment
-- and that nothing in the store refers to. `after` of others is looked at elsewhere: it
-- has no index.
SELECT id, repo, state FROM job AS old
WHERE id IN (SELECT value FROM json_each(?1)) AND finished_at < ?2
    AND NOT EXISTS (SELECT 1 FROM quarantine WHERE quarantine.job = old.id)
    AND NOT EXISTS (
        SELECT 1 FROM worktree
        WHERE worktree.id = old.id AND worktree.state <> 'removed')
    AND NOT EXISTS (
        SELECT 1 FROM poison WHERE poison.repo = old.repo AND poison.job = old.id)
    AND NOT EXISTS (SELECT 1 FROM job AS new WHERE new.retry_of = old.id)
    AND NOT EXISTS (SELECT 1 FROM job AS parent WHERE parent.child = old.id);

-- name: dependencies
-- The jobs that any job runs after that has not ended.
SELECT DISTINCT value FROM job, json_each(job.after)
WHERE finished_at IS NULL AND after <> '[]';

-- name: keep_in_mind
INSERT OR REPLACE INTO forgotten (job, forgotten_at, request_id)
SELECT id, ?1, request_id FROM job WHERE id IN (SELECT value FROM json_each(?2));

-- name: forget_jobs
DELETE FROM job WHERE id IN (SELECT value FROM json_each(?));

-- name: forget_forgotten
-- All but the newest: ids are in the order of time.
DELETE FROM forgotten
WHERE job < (SELECT job FROM forgotten ORDER BY job DESC LIMIT 1 OFFSET ? - 1);

-- name: was_forgotten
-- An id, or a prefix of one.
SELECT job FROM forgotten WHERE job = ?1 OR (job >= ?1 AND job < ?1 || '~') LIMIT 1;

-- name: forgotten_request
SELECT job FROM forgotten WHERE request_id = ?;

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
WHERE job IN (SELECT value FROM json_each(?1))
UNION ALL
SELECT json_extract(CAST(step.body AS TEXT), '$.job'),
    'a step of a workflow that has not ended takes its files', NULL
FROM workflow
JOIN json_each(
    CASE WHEN json_valid(CAST(workflow.definition AS TEXT))
        THEN CAST(workflow.definition AS TEXT) ELSE '{}' END,
    '$.steps'
) AS defined
JOIN json_each(defined.value, '$.inputs') AS input
JOIN workflow_step AS step
    ON step.id = workflow.id || '/' || json_extract(input.value, '$[0]')
WHERE workflow.state IN ('running', 'paused', 'cancelling')
    AND json_valid(CAST(step.body AS TEXT))
    AND json_extract(CAST(step.body AS TEXT), '$.job')
        IN (SELECT value FROM json_each(?1));

-- name: known_jobs
-- Of these ids, given as one JSON array, those that are jobs, and when they ended.
SELECT id, finished_at FROM job WHERE id IN (SELECT value FROM json_each(?));

-- name: awaited_inputs
-- Of these ids, given as one JSON array, the jobs whose files another one is to have that
-- has not ended, which runs after them, or a step of a workflow that has not.
SELECT DISTINCT json_extract(input.value, '$.job') AS other
FROM job, json_each(CAST(spec AS TEXT), '$.inputs') AS input
WHERE finished_at IS NULL AND after <> '[]'
    AND other IN (SELECT value FROM json_each(?1))
UNION
SELECT json_extract(CAST(step.body AS TEXT), '$.job')
FROM workflow
JOIN json_each(
    CASE WHEN json_valid(CAST(workflow.definition AS TEXT))
        THEN CAST(workflow.definition AS TEXT) ELSE '{}' END,
    '$.steps'
) AS defined
JOIN json_each(defined.value, '$.inputs') AS input
JOIN workflow_step AS step
    ON step.id = workflow.id || '/' || json_extract(input.value, '$[0]')
WHERE workflow.state IN ('running', 'paused', 'cancelling')
    AND json_valid(CAST(step.body AS TEXT))
    AND json_extract(CAST(step.body AS TEXT), '$.job')
        IN (SELECT value FROM json_each(?1));

-- name: unfinished_jobs
-- Of these ids, given as one JSON array, the jobs that have not ended.
SELECT id FROM job
WHERE finished_at IS NULL AND id IN (SELECT value FROM json_each(?));

-- name: repository_paths
-- Of all repositories there are and ever were.
SELECT path FROM repository;

-- name: known_prompts
-- The digests of what the agents of jobs were asked; and, at the end of the path, of
-- what the commands of goals are told of the last check.
SELECT json_extract(CAST(spec AS TEXT), '$.agent.prompt') FROM job
WHERE kind IN ('agent-run', 'dispatch-task')
UNION
SELECT json_extract(CAST(spec AS TEXT), '$.agent.anew') FROM job
WHERE kind IN ('agent-run', 'dispatch-task')
UNION
SELECT json_extract(CAST(spec AS TEXT), '$.agent.answer.prompt') FROM job
WHERE kind IN ('agent-run', 'dispatch-task')
    AND json_extract(CAST(spec AS TEXT), '$.agent.answer.prompt') IS NOT NULL
UNION
SELECT substr(json_extract(CAST(spec AS TEXT), '$.env.FORGE_GOAL_FEEDBACK'), -64)
FROM job
WHERE work IS NOT NULL;

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

-- name: worktrees_to_clean
-- Those that are there, each with its repository and the job that it was made for, or
-- of those that go on in it the one that ends last.
WITH follower (tree, id, ended) AS MATERIALIZED (
    SELECT json_extract(CAST(spec AS TEXT), '$.isolation.of'), id,
        max(coalesce(finished_at, 9e999))
    FROM job
    WHERE kind IN ('agent-run', 'dispatch-task')
        AND instr(spec, CAST('"of":' AS BLOB)) > 0
    GROUP BY 1)
SELECT worktree.id, worktree.repo, worktree.path, branch, made_at, worktree.state, base,
    base_commit, kept, reason, worktree.removed_at, repository.name, common_dir, device,
    inode, job.state, finished_at
FROM worktree JOIN repository ON repository.id = worktree.repo
    LEFT JOIN follower ON follower.tree = worktree.id
    LEFT JOIN job ON job.id = coalesce(follower.id, worktree.id)
WHERE worktree.state <> 'removed' ORDER BY made_at, worktree.id;

-- name: worktrees_named
-- The same of all that there ever were and are not forgotten, whose id begins or ends
-- so, or whose branch is called that; all of them if it is empty.
WITH follower (tree, id, ended) AS MATERIALIZED (
    SELECT json_extract(CAST(spec AS TEXT), '$.isolation.of'), id,
        max(coalesce(finished_at, 9e999))
    FROM job
    WHERE kind IN ('agent-run', 'dispatch-task')
        AND instr(spec, CAST('"of":' AS BLOB)) > 0
    GROUP BY 1)
SELECT worktree.id, worktree.repo, worktree.path, branch, made_at, worktree.state, base,
    base_commit, kept, reason, worktree.removed_at, repository.name, common_dir, device,
    inode, job.state, finished_at
FROM worktree JOIN repository ON repository.id = worktree.repo
    LEFT JOIN follower ON follower.tree = worktree.id
    LEFT JOIN job ON job.id = coalesce(follower.id, worktree.id)
WHERE ?1 = '' OR branch = ?1 OR worktree.id = ?1
    OR length(?1) >= 4 AND ?1 IN (
        substr(worktree.id, 1, length(?1)), substr(worktree.id, -length(?1)))
ORDER BY made_at, worktree.id;

-- name: worktree_users
-- The states of the jobs that a worktree was made for, that go on in it, or that name
-- its folder.
SELECT state FROM job
WHERE finished_at IS NULL AND (
    id = ?1 OR instr(spec, CAST(?2 AS BLOB)) > 0
    OR json_extract(CAST(spec AS TEXT), '$.isolation.of') = ?1);

-- name: repository_place
SELECT name, common_dir, device, inode FROM repository WHERE id = ?;

-- name: history_rows
-- The first rows behind one, and before a number.
SELECT first, events FROM history WHERE first > ? AND first < ? ORDER BY first LIMIT ?;

-- name: oldest_active
SELECT min(created_at) FROM job WHERE finished_at IS NULL;

-- name: active_jobs
SELECT id FROM job WHERE finished_at IS NULL;

-- name: forget_history
-- Never the last row: the number of the next event follows from it.
DELETE FROM history WHERE first < ? AND first < (SELECT max(first) FROM history);
