-- The store of one home. Times are seconds since 1970 (UTC) of the wall clock.
-- `PRAGMA user_version` is the number of the last migration that was applied.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE repository (
    id            TEXT PRIMARY KEY,
    name          TEXT NOT NULL,
    path          TEXT NOT NULL,
    common_dir    TEXT NOT NULL,
    device        INTEGER NOT NULL,
    inode         INTEGER NOT NULL,
    enabled       INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    added_at      REAL NOT NULL,
    removed_at    REAL,
    -- The last fence given to a dispatch. It is never reset.
    fence         INTEGER NOT NULL DEFAULT 0 CHECK (fence >= 0),
    -- Fairness between repositories outlives a restart.
    last_dispatch REAL NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

-- A name, and a common directory, belong to one repository at a time.
CREATE UNIQUE INDEX repository_name ON repository (name) WHERE removed_at IS NULL;
CREATE UNIQUE INDEX repository_inode ON repository (device, inode)
    WHERE removed_at IS NULL;

CREATE TABLE job (
    id             TEXT PRIMARY KEY,
    repo           TEXT NOT NULL REFERENCES repository (id),
    kind           TEXT NOT NULL,
    state          TEXT NOT NULL,
    priority       INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 4),
    provider       TEXT,
    claims         TEXT NOT NULL,
    after          TEXT NOT NULL,
    replay         TEXT NOT NULL CHECK (
        replay = 'never' OR replay = 'safe' OR replay = 'always'
    ),
    attempt        INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    max_attempts   INTEGER NOT NULL CHECK (max_attempts >= 1),
    fence          INTEGER,
    -- What only readers and the start of the job need.
    spec           BLOB NOT NULL,
    name           TEXT,
    labels         TEXT NOT NULL,
    origin         TEXT NOT NULL,
    unique_key     TEXT,
    request_id     TEXT,
    digest         TEXT,
    retry_of       TEXT,
    created_at     REAL NOT NULL,
    queued_at      REAL NOT NULL,
    dispatched_at  REAL,
    started_at     REAL,
    finished_at    REAL,
    -- What became of the last attempt.
    identity       TEXT,
    error          TEXT,
    receipt        BLOB,
    -- A state is one of these, and a job has ended exactly if it has an end. Not with
    -- IN: SQLite would build a table of the words anew for each statement.
    CHECK ((finished_at IS NOT NULL) IS (CASE state
        WHEN 'queued' THEN 0
        WHEN 'dispatched' THEN 0
        WHEN 'succeeded' THEN 1
        WHEN 'running' THEN 0
        WHEN 'failed' THEN 1
        WHEN 'waiting_for_dependency' THEN 0
        WHEN 'waiting_for_workspace' THEN 0
        WHEN 'waiting_for_heavy_check' THEN 0
        WHEN 'waiting_for_integration' THEN 0
        WHEN 'waiting_for_release_barrier' THEN 0
        WHEN 'waiting_for_approval' THEN 0
        WHEN 'waiting_for_limit' THEN 0
        WHEN 'waiting_for_retry' THEN 0
        WHEN 'timed_out' THEN 1
        WHEN 'cancelled' THEN 1
        WHEN 'orphaned' THEN 1
        WHEN 'stale' THEN 1
        WHEN 'human_attention_required' THEN 1
    END)),
    -- Only a dispatch gives a fence, and what is reserved has one.
    CHECK (state NOT IN ('dispatched', 'running') OR
           (fence IS NOT NULL AND attempt > 0 AND dispatched_at IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX job_active ON job (repo) WHERE finished_at IS NULL;
-- A request id names one job for ever; a unique key one active job at a time.
CREATE UNIQUE INDEX job_request ON job (request_id) WHERE request_id IS NOT NULL;
CREATE UNIQUE INDEX job_unique ON job (repo, unique_key)
    WHERE unique_key IS NOT NULL AND finished_at IS NULL;

-- The history: every move with its reason, in the order in which it was saved. A row is
-- the JSON array of consecutive events; `first` is the number of the first of them.
CREATE TABLE history (
    first  INTEGER PRIMARY KEY,
    events BLOB NOT NULL
) STRICT;
