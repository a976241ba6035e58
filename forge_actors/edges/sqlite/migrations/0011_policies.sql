-- Which workflow instance or EPIC run a job is of, to be found by it; `spec` says it too.
ALTER TABLE job ADD COLUMN work TEXT;
UPDATE job SET work = json_extract(CAST(spec AS TEXT), '$.work')
WHERE instr(spec, CAST('"work":' AS BLOB)) AND json_valid(CAST(spec AS TEXT));
CREATE INDEX job_work ON job (work) WHERE work IS NOT NULL;

-- Which work is let in and started. Without a row, or with `normal`: any.
CREATE TABLE policy (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    mode      TEXT NOT NULL CHECK (
        mode IN ('normal', 'exclusive', 'convergence', 'maintenance')
    ),
    -- Of `exclusive`: the work whose jobs are started.
    work      TEXT,
    reason    TEXT NOT NULL,
    since     REAL NOT NULL,
    until     REAL,
    -- How often it was changed.
    revision  INTEGER NOT NULL CHECK (revision > 0),
    CHECK ((mode = 'exclusive') = (work IS NOT NULL))
) STRICT, WITHOUT ROWID;
