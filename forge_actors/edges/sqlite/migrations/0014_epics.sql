-- Runs of EPICs. The bodies are JSON; `active` is 1 until a run has ended.
CREATE TABLE epic_run (
    id          TEXT PRIMARY KEY,
    active      INTEGER NOT NULL,
    request     TEXT UNIQUE,
    body        BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Those that go on are few.
CREATE INDEX epic_run_active ON epic_run (id) WHERE active = 1;
