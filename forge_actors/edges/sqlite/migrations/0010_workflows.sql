-- Workflows. The bodies are JSON that only their actors read.
CREATE TABLE workflow (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    state       TEXT NOT NULL,
    request     TEXT UNIQUE,
    definition  BLOB NOT NULL,
    body        BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX workflow_by_state ON workflow (state, id DESC);
CREATE INDEX workflow_by_name ON workflow (name, id DESC);

-- Their steps, those that have begun or were left out. `id` is that of the workflow, a
-- slash and the name.
CREATE TABLE workflow_step (
    id          TEXT PRIMARY KEY,
    number      INTEGER NOT NULL,
    state       TEXT NOT NULL,
    body        BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Those that ask a person are few.
CREATE INDEX workflow_step_asking ON workflow_step (id) WHERE state = 'asking';
