-- Where nothing new starts: `all`, `repo:ID` or `provider:NAME`.
CREATE TABLE pause (
    scope TEXT PRIMARY KEY,
    since REAL NOT NULL,
    -- What runs there is suspended too.
    jobs  INTEGER NOT NULL CHECK (jobs IN (0, 1))
) STRICT, WITHOUT ROWID;

-- Since when a job is held or, while it runs, suspended because somebody asked.
ALTER TABLE job ADD COLUMN held_at REAL;
