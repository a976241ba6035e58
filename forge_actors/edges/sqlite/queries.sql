-- name: owner_now
-- One row in any case, so that looking costs no more than it must. The instance too: a
-- store that was made anew begins with the first epoch again.
SELECT (SELECT epoch FROM owner), (SELECT instance FROM owner);

-- name: owner
SELECT epoch, instance, pid, start_ticks, boot_id, namespace, release, acquired_at
FROM owner;

-- name: take_over
INSERT OR REPLACE INTO owner (
    one, epoch, instance, pid, start_ticks, boot_id, namespace, release, acquired_at
) VALUES (1, 1 + coalesce((SELECT epoch FROM owner), 0), ?, ?, ?, ?, ?, ?, ?);

-- name: add_history
-- Every change brings its event in the same transaction.
INSERT INTO history (first, events) VALUES (?, ?);

-- name: add_job
-- accepted: -> queued or waiting_for_dependency
INSERT INTO job (
    id, repo, kind, state, priority, provider, claims, after, replay, attempt,
    max_attempts, spec, name, labels, origin, unique_key, request_id, digest, retry_of,
    created_at, queued_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: wait_job
-- waiting -> waiting: it waits for something else
UPDATE job SET state = ? WHERE id = ?;

-- name: dispatch_job
-- waiting -> dispatched: the reservation, durable before anything is started
UPDATE job SET state = 'dispatched', attempt = ?, fence = ?, dispatched_at = ?,
    started_at = NULL, identity = NULL, error = NULL, receipt = NULL
WHERE id = ? AND finished_at IS NULL AND state <> 'dispatched' AND state <> 'running';

-- name: dispatch_repository
-- The fence counter, which only grows, and the turn of the repository.
UPDATE repository SET fence = ?1, last_dispatch = ?2 WHERE id = ?3 AND fence < ?1;

-- name: run_job
-- dispatched -> running
-- Here and below: only the current attempt of a job has its fence while it is reserved.
UPDATE job SET state = 'running', started_at = ?, identity = ?
WHERE id = ? AND attempt = ? AND fence = ?
    AND (state = 'dispatched' OR state = 'running');

-- name: requeue_job
-- dispatched, running -> waiting: another attempt
UPDATE job SET state = ?, error = ?, queued_at = ?, retry_at = ?, refused = ?
WHERE id = ? AND attempt = ? AND fence = ?
    AND (state = 'dispatched' OR state = 'running');

-- name: respecify_job
UPDATE job SET spec = ? WHERE id = ?;

-- name: delegate_job
-- Of several jobs that one handed its work to the first counts.
UPDATE job SET child = coalesce(child, ?)
WHERE id = ? AND attempt = ? AND fence = ?
    AND (state = 'dispatched' OR state = 'running');

-- name: job_child
SELECT child FROM job WHERE id = ?;

-- name: job_attempt
SELECT state, attempt, fence, repo FROM job WHERE id = ?;

-- name: end_job
-- dispatched, running -> terminal; a receipt knows better when the attempt began
UPDATE job SET state = ?, error = ?, finished_at = ?, receipt = ?,
    started_at = coalesce(?, started_at)
WHERE id = ? AND attempt = ? AND fence = ?
    AND (state = 'dispatched' OR state = 'running');

-- name: end_waiting_job
-- waiting -> terminal
UPDATE job SET state = ?, error = ?, finished_at = ?
WHERE id = ? AND finished_at IS NULL AND state <> 'dispatched' AND state <> 'running';

-- name: hold_job
-- waiting: it is held, or not any more; running: it is suspended, or goes on
UPDATE job SET held_at = ? WHERE id = ?;

-- name: edit_job
-- waiting: what is not given stays
UPDATE job SET priority = coalesce(?, priority), claims = coalesce(?, claims),
    labels = coalesce(?, labels), spec = ?
WHERE id = ?;

-- name: redirect_job
-- waiting: another agent is to do it
UPDATE job SET provider = ?, spec = ? WHERE id = ?;

-- name: begin_pause
INSERT OR REPLACE INTO pause (scope, since, jobs) VALUES (?, ?, ?);

-- name: end_pause
DELETE FROM pause WHERE scope = ?;

-- name: pauses
SELECT scope, since, jobs FROM pause ORDER BY scope;

-- name: keep_account
INSERT OR REPLACE INTO account (
    provider, open, since, reason, job, retry_at, stated, tries, detail
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: accounts
SELECT provider, open, since, reason, job, retry_at, stated, tries, detail
FROM account ORDER BY provider;

-- name: add_repository
INSERT INTO repository (
    id, name, path, common_dir, device, inode, enabled, added_at, removed_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: change_repository
-- Everything but the counters, which only a dispatch moves.
UPDATE repository SET name = ?, path = ?, common_dir = ?, device = ?, inode = ?,
    enabled = ?, removed_at = ?
WHERE id = ?;

-- name: jobs_to_move
-- Those that may start again where their repository is now.
SELECT id, claims, spec FROM job WHERE repo = ? AND finished_at IS NULL;

-- name: claims_of
-- Of jobs that have not ended, and what others left held.
SELECT id, claims FROM job WHERE repo = ?1 AND finished_at IS NULL
UNION ALL
SELECT job, claims FROM quarantine WHERE repo = ?1;

-- name: move_job
UPDATE job SET claims = ?, spec = ? WHERE id = ?;

-- name: move_quarantine
UPDATE quarantine SET claims = ? WHERE job = ?;

-- name: quarantine
INSERT OR REPLACE INTO quarantine (
    job, repo, attempt, fence, claims, remaining, reason, since
) VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: end_quarantine
DELETE FROM quarantine WHERE job = ?;

-- name: end_quarantines
DELETE FROM quarantine WHERE repo = ?;

-- name: quarantines
SELECT job, repo, attempt, fence, claims, remaining, reason, since
FROM quarantine ORDER BY since, job;

-- name: quarantines_of
SELECT job, repo, attempt, fence, claims, remaining, reason, since
FROM quarantine WHERE repo = ? ORDER BY since, job;

-- name: set_aside
INSERT OR REPLACE INTO poison (repo, job, error, since) VALUES (?, ?, ?, ?);

-- name: take_back
-- All of it, or one job, or under no name the repository itself.
DELETE FROM poison WHERE repo = ?1 AND job = coalesce(?2, job);

-- name: poisons
SELECT repo, error, since, job FROM poison ORDER BY since, repo, job;

-- name: poisons_of
SELECT repo, error, since, job FROM poison WHERE repo = ? ORDER BY job;

-- name: keep_worktree
INSERT OR REPLACE INTO worktree (
    id, repo, path, branch, made_at, state, base, base_commit, kept, reason, removed_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: worktree
SELECT id, repo, path, branch, made_at, state, base, base_commit, kept, reason,
    removed_at
FROM worktree WHERE id = ?;

-- name: worktrees
SELECT id, repo, path, branch, made_at, state, base, base_commit, kept, reason,
    removed_at
FROM worktree ORDER BY made_at, id;

-- name: load_repository
SELECT fence, enabled, removed_at,
    EXISTS (SELECT 1 FROM quarantine WHERE quarantine.repo = repository.id),
    EXISTS (SELECT 1 FROM poison WHERE poison.repo = repository.id),
    scope, since, jobs
FROM repository LEFT JOIN pause ON scope = 'repo:' || id WHERE id = ?;

-- name: load_jobs
-- The queue of one repository as its ledger needs it.
SELECT id, kind, state, priority, provider, claims, after, replay, attempt,
    max_attempts, fence, queued_at, started_at, held_at, retry_at, spec, refused
FROM job WHERE repo = ? AND finished_at IS NULL ORDER BY queued_at, id;

-- name: job_counts
-- In one look through the rows: through the index of the active ones it takes longer.
SELECT repo, state, count(*), max(finished_at) FROM job GROUP BY repo, state;

-- name: jobs_apart
-- Those that have not ended and are not queued, which are few. In one look through the
-- rows, which takes a tenth of the time: the index of the active ones has no state.
SELECT id, repo, state FROM job WHERE state <> 'queued' AND +finished_at IS NULL;

-- name: last_dispatches
SELECT id, last_dispatch FROM repository WHERE last_dispatch > 0;

-- name: job_spec
SELECT spec FROM job WHERE id = ?;

-- name: job_end
SELECT kind, error, receipt FROM job WHERE id = ?;

-- name: job_state
SELECT state FROM job WHERE id = ?;

-- name: last_history
SELECT first, events FROM history ORDER BY first DESC LIMIT 1;

-- name: job_launched
SELECT attempt, identity FROM job WHERE id = ?;

-- name: job_progress
SELECT state, attempt FROM job WHERE id = ?;

-- name: repository_turn
SELECT fence, last_dispatch FROM repository WHERE id = ?;

-- name: by_request
SELECT id, digest FROM job WHERE request_id = ?;

-- name: by_unique
SELECT id FROM job WHERE repo = ? AND unique_key = ? AND finished_at IS NULL;

-- name: match_job
-- An id, a prefix of one (as a range of the key), or a tail of one.
SELECT id FROM job WHERE id = ?1 OR (id >= ?1 AND id < ?1 || '~') LIMIT 3;

-- name: match_job_tail
SELECT id FROM job WHERE id LIKE '%' || ?1 ORDER BY id DESC LIMIT 3;

-- name: all_repositories
SELECT id, name, path, common_dir, device, inode, added_at, enabled, removed_at, fence,
    last_dispatch
FROM repository WHERE removed_at IS NULL ORDER BY name;

-- name: history_after
-- From the page that holds the event after this one.
SELECT first, events FROM history
WHERE first >= coalesce((SELECT max(first) FROM history WHERE first <= ?1 + 1), 0)
ORDER BY first;

-- name: history_with
-- The pages in a range that hold one text of each list, as far as a list is given.
SELECT first, events FROM history
WHERE first >= coalesce((SELECT max(first) FROM history WHERE first <= ?1 + 1), 0)
    AND first <= ?2
    AND (?3 IS NULL OR EXISTS (
        SELECT 1 FROM json_each(?3) WHERE instr(events, CAST(value AS BLOB))))
    AND (?4 IS NULL OR EXISTS (
        SELECT 1 FROM json_each(?4) WHERE instr(events, CAST(value AS BLOB))))
    AND (?5 IS NULL OR EXISTS (
        SELECT 1 FROM json_each(?5) WHERE instr(events, CAST(value AS BLOB))))
ORDER BY first;

-- name: repository_names
-- Of the repositories with these ids, given as one JSON array; removed ones too.
SELECT id, name FROM repository WHERE id IN (SELECT value FROM json_each(?));

-- name: job_moments
-- When jobs were accepted, and came into the queue last; ids are one JSON array.
SELECT id, created_at, queued_at FROM job WHERE id IN (SELECT value FROM json_each(?));

-- name: begun
-- The attempts that jobs have now, and when these began; ids are one JSON array.
SELECT id, attempt, dispatched_at, started_at FROM job
WHERE id IN (SELECT value FROM json_each(?));

-- name: job_told
-- What traces tell of jobs; ids are one JSON array.
SELECT job.id, kind, repository.name, created_at, spec
FROM job JOIN repository ON repository.id = job.repo
WHERE job.id IN (SELECT value FROM json_each(?));

-- name: some_waiting
-- Jobs that wait, and their repositories; so many at most.
SELECT id, repo FROM job
WHERE finished_at IS NULL AND state NOT IN ('dispatched', 'running') LIMIT ?;

-- name: job_names
SELECT id, name FROM job
WHERE name IS NOT NULL AND id IN (SELECT value FROM json_each(?));

-- name: removed_named
SELECT id FROM repository WHERE removed_at IS NOT NULL AND (name = ?1 OR id = ?1);

-- name: view_job
SELECT job.id, state, kind, repository.name, job.name, spec, priority, attempt,
    max_attempts, job.fence, claims, after, provider, replay, retry_of, labels, origin,
    request_id, created_at, queued_at, started_at, finished_at, identity, error, receipt,
    job.repo, held_at, refused
FROM job JOIN repository ON repository.id = job.repo WHERE job.id = ?;

-- name: active_of_repository
SELECT count(*) FROM job WHERE repo = ? AND finished_at IS NULL;

-- name: active_total
SELECT count(*) FROM job WHERE finished_at IS NULL;

-- name: active_ids
SELECT id FROM job WHERE repo = ? AND finished_at IS NULL ORDER BY id;

-- name: view_jobs
-- The same for many ids, given as one JSON array.
SELECT job.id, state, kind, repository.name, job.name, spec, priority, attempt,
    max_attempts, job.fence, claims, after, provider, replay, retry_of, labels, origin,
    request_id, created_at, queued_at, started_at, finished_at, identity, error, receipt,
    job.repo, held_at, refused
FROM job JOIN repository ON repository.id = job.repo WHERE job.id IN (SELECT value FROM json_each(?));

-- name: retry_jobs
-- Jobs to be made anew, their ids given as one JSON array: the columns of `load_jobs`,
-- then the rest. What is made anew is not held.
SELECT job.id, kind, state, priority, provider, claims, after, replay, attempt,
    max_attempts, job.fence, queued_at, started_at, NULL, NULL, spec,
    repo, job.name, labels, unique_key, created_at, origin, repository.name
FROM job JOIN repository ON repository.id = job.repo
WHERE job.id IN (SELECT value FROM json_each(?));

-- name: session_users
-- The jobs that go on with a session and have not ended.
SELECT id FROM job WHERE finished_at IS NULL AND kind IN ('agent-run', 'dispatch-task')
    AND json_extract(CAST(spec AS TEXT), '$.agent.session') = ?;

-- name: newest_retries
-- Of every job that was retried.
SELECT retry_of, max(id) FROM job WHERE retry_of IS NOT NULL GROUP BY retry_of;

-- name: job_places
-- Of the jobs among these ids, given as one JSON array.
SELECT id, repo, state FROM job WHERE id IN (SELECT value FROM json_each(?));

-- name: states_of
-- Of the jobs among these ids, given as one JSON array.
SELECT id, state FROM job WHERE id IN (SELECT value FROM json_each(?));

-- name: keep_usage
INSERT OR REPLACE INTO usage (id, job, attempt, repo, provider, agent, session, resumed,
    at, day, input_tokens, output_tokens, cached_tokens, cost)
VALUES (?1 || '.' || ?2, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, date(?8, 'unixepoch'),
    ?9, ?10, ?11, ?12);

-- name: forget_usage
DELETE FROM usage WHERE at < ?;

-- name: usage_of_session
SELECT job, attempt, repo, provider, agent, session, resumed, at, input_tokens,
    output_tokens, cached_tokens, cost
FROM usage WHERE agent = ? AND session = ?;

-- name: usage_by
-- By a group: attempt, job, repo, provider, agent, day, or nothing; since a moment; so
-- many at most. Attempts and days are in their order, the last one first.
SELECT CASE ?1
        WHEN 'attempt' THEN usage.id
        WHEN 'job' THEN job
        WHEN 'repo' THEN coalesce(repository.name, repo)
        WHEN 'provider' THEN provider
        WHEN 'agent' THEN agent
        WHEN 'day' THEN day
    END AS key,
    count(*) AS attempts, sum(input_tokens), sum(output_tokens), sum(cached_tokens),
    sum(cost), count(input_tokens), count(output_tokens), count(cached_tokens),
    count(cost)
FROM usage LEFT JOIN repository ON repository.id = usage.repo
WHERE at >= ?2
GROUP BY key
ORDER BY CASE ?1 WHEN 'day' THEN key WHEN 'attempt' THEN max(at) END DESC,
    sum(cost) DESC,
    coalesce(sum(input_tokens), 0) + coalesce(sum(output_tokens), 0) DESC, key
LIMIT ?3;

-- name: usage_total
SELECT NULL, count(*), sum(input_tokens), sum(output_tokens), sum(cached_tokens),
    sum(cost), count(input_tokens), count(output_tokens), count(cached_tokens),
    count(cost)
FROM usage WHERE at >= ?;

-- name: used_since
-- Of each provider in each repository: dollars and tokens, as far as they are known.
SELECT usage.repo, coalesce(repository.name, usage.repo), provider,
    coalesce(sum(cost), 0.0),
    coalesce(sum(input_tokens), 0) + coalesce(sum(output_tokens), 0)
FROM usage LEFT JOIN repository ON repository.id = usage.repo
WHERE at >= ? GROUP BY usage.repo, provider;

-- name: usage_of_job
-- By its key, which begins with the job and a dot; a slash comes next.
SELECT coalesce(sum(cost), 0.0),
    coalesce(sum(input_tokens), 0) + coalesce(sum(output_tokens), 0)
FROM usage WHERE id > ?1 || '.' AND id < ?1 || '/';

-- name: account_of_job
SELECT job.repo, repository.name, provider
FROM job JOIN repository ON repository.id = job.repo WHERE job.id = ?;
