-- Schedules. `body` is all that is known of one, in JSON: only its actor reads it.
CREATE TABLE schedule (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    body        BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- What became of the windows of each schedule; the newest ones are kept.
CREATE TABLE occurrence (
    id          TEXT PRIMARY KEY,
    schedule    TEXT NOT NULL,
    window      TEXT NOT NULL,
    due         REAL NOT NULL,
    decided     REAL NOT NULL,
    decision    TEXT NOT NULL,
    reason      TEXT NOT NULL,
    job         TEXT,
    count       INTEGER NOT NULL CHECK (count > 0)
) STRICT, WITHOUT ROWID;

CREATE INDEX occurrence_of ON occurrence (schedule, due DESC);
