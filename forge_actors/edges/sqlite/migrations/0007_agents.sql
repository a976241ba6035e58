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
