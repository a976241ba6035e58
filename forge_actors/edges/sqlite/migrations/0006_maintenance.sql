-- Each class of the clean-up: when it was visited last, where it goes on, what it came to.
-- The visit is written down before it begins, so that one that hangs is not repeated first.
CREATE TABLE clean_class (
    name          TEXT PRIMARY KEY,
    visited_at    REAL NOT NULL DEFAULT 0,
    cursor        TEXT,
    -- The last report as JSON.
    report        BLOB
) STRICT, WITHOUT ROWID;

-- The runs as a whole, one row.
CREATE TABLE clean_run (
    one           INTEGER PRIMARY KEY CHECK (one = 1),
    began_at      REAL NOT NULL,
    ended_at      REAL,
    -- Number of the last event when it began: without a newer end there is nothing to do.
    last_event    INTEGER NOT NULL DEFAULT 0,
    runs          INTEGER NOT NULL DEFAULT 0,
    failures      INTEGER NOT NULL DEFAULT 0,
    removed       INTEGER NOT NULL DEFAULT 0,
    bytes         INTEGER NOT NULL DEFAULT 0,
    error         TEXT
) STRICT;
