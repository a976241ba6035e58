-- Each class of the clean-up: when it was visited last, where it goes on, what it came to.
-- The visit is written down before it begins, so that one that hangs is not repeated first.
CREATE TABLE clean_class (
    name          TEXT PRIMARY KEY,
    visited_at    REAL NOT NULL DEFAULT 0,
    cursor        TEXT,
    -- The last report as JSON.
    report        BLOB,
    -- Bytes that it had in the home when they were counted last.
    size          INTEGER
) STRICT, WITHOUT ROWID;

-- The runs as a whole, one row.
CREATE TABLE clean_run (
    one           INTEGER PRIMARY KEY CHECK (one = 1),
    began_at      REAL NOT NULL,
    ended_at      REAL,
    -- When the last one of all classes began: what ended until then was looked at.
    looked_at     REAL NOT NULL DEFAULT 0,
    runs          INTEGER NOT NULL DEFAULT 0,
    failures      INTEGER NOT NULL DEFAULT 0,
    in_a_row      INTEGER NOT NULL DEFAULT 0,
    removed       INTEGER NOT NULL DEFAULT 0,
    bytes         INTEGER NOT NULL DEFAULT 0,
    error         TEXT,
    -- Whether a class was not visited, or has more to do.
    more          INTEGER NOT NULL DEFAULT 0 CHECK (more IN (0, 1)),
    -- The first moment at which something that stays is old enough.
    due_at        REAL
) STRICT;

-- The jobs that a clean-up removed last: that they were there is still known, and so are
-- their request ids.
CREATE TABLE forgotten (
    job           TEXT PRIMARY KEY,
    forgotten_at  REAL NOT NULL,
    request_id    TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX forgotten_request ON forgotten (request_id) WHERE request_id IS NOT NULL;

-- Who refers to a job. Nearly all jobs refer to none, and are in neither.
CREATE INDEX job_retry ON job (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX job_child ON job (child) WHERE child IS NOT NULL;
