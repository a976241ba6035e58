-- The account of each provider that was closed once. `retry_at`: when it opens or is tried.
CREATE TABLE account (
    provider      TEXT PRIMARY KEY,
    open          INTEGER NOT NULL CHECK (open IN (0, 1)),
    since         REAL NOT NULL,
    reason        TEXT NOT NULL,
    job           TEXT,
    retry_at      REAL,
    -- Whether that moment was told, or is a guess, and how often in a row it was one.
    stated        INTEGER NOT NULL CHECK (stated IN (0, 1)),
    tries         INTEGER NOT NULL CHECK (tries >= 0),
    detail        TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Attempts that a provider refused: they are not among those that the job may have.
ALTER TABLE job ADD COLUMN refused INTEGER NOT NULL DEFAULT 0 CHECK (refused >= 0);

-- What was done about the items of the inbox, which follow from all the other tables:
-- when a person said that one is seen to, and when somebody was told of it.
CREATE TABLE inbox (
    item          TEXT PRIMARY KEY,
    dismissed_at  REAL,
    notified_at   REAL
) STRICT, WITHOUT ROWID;

-- What each attempt of an agent used; NULL is unknown. It outlives its job. `day` is that of
-- `at`, in UTC.
CREATE TABLE usage (
    -- The job, a dot, and the attempt.
    id             TEXT PRIMARY KEY,
    job            TEXT NOT NULL,
    attempt        INTEGER NOT NULL,
    repo           TEXT NOT NULL,
    provider       TEXT,
    agent          TEXT NOT NULL,
    session        TEXT,
    resumed        INTEGER NOT NULL CHECK (resumed IN (0, 1)),
    at             REAL NOT NULL,
    day            TEXT NOT NULL,
    input_tokens   INTEGER,
    output_tokens  INTEGER,
    cached_tokens  INTEGER,
    cost           REAL
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_at ON usage (at);
CREATE INDEX usage_session ON usage (session) WHERE session IS NOT NULL;
