-- Who may write: a start takes the home over with an epoch one larger than the last.
-- There is one row at most.
CREATE TABLE owner (
    one           INTEGER PRIMARY KEY CHECK (one = 1),
    epoch         INTEGER NOT NULL CHECK (epoch > 0),
    instance      TEXT NOT NULL,
    pid           INTEGER NOT NULL,
    start_ticks   INTEGER NOT NULL,
    boot_id       TEXT NOT NULL,
    namespace     INTEGER NOT NULL,
    release       TEXT NOT NULL,
    acquired_at   REAL NOT NULL
) STRICT;

-- Claims that nobody may have, although their job has ended: something of the attempt
-- may still be alive. `remaining` is a JSON array of process identities.
CREATE TABLE quarantine (
    job           TEXT PRIMARY KEY REFERENCES job (id),
    repo          TEXT NOT NULL REFERENCES repository (id),
    attempt       INTEGER NOT NULL,
    fence         INTEGER NOT NULL,
    claims        TEXT NOT NULL,
    remaining     TEXT NOT NULL,
    reason        TEXT NOT NULL,
    since         REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- Records that made an actor fail at each start. They are left alone until somebody
-- looks. `job` is empty where all of a repository is meant.
CREATE TABLE poison (
    repo          TEXT NOT NULL,
    job           TEXT NOT NULL DEFAULT '',
    error         TEXT NOT NULL,
    since         REAL NOT NULL,
    PRIMARY KEY (repo, job)
) STRICT, WITHOUT ROWID;

-- Not before this moment is it tried again.
ALTER TABLE job ADD COLUMN retry_at REAL;
-- The job that it handed its work to: then its own success means "accepted".
ALTER TABLE job ADD COLUMN child TEXT;
