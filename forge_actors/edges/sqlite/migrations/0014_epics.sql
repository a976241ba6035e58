-- Runs of EPICs. The bodies are JSON; `active` is 1 until a run has ended, `needs` while
-- somebody has to look at one, `target` what is worked through, and where.
CREATE TABLE epic_run (
    id          TEXT PRIMARY KEY,
    active      INTEGER NOT NULL,
    request     TEXT UNIQUE,
    target      TEXT NOT NULL,
    needs       INTEGER NOT NULL,
    body        BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- These are few.
CREATE INDEX epic_run_active ON epic_run (id) WHERE active = 1;
CREATE INDEX epic_run_needs ON epic_run (id) WHERE needs = 1;
CREATE INDEX epic_run_target ON epic_run (target, id);
