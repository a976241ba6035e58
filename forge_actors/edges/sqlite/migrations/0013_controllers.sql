-- Controllers. The bodies are JSON that only their actor reads.
CREATE TABLE controller (
    id          TEXT PRIMARY KEY,
    name        TEXT NOT NULL,
    state       TEXT NOT NULL,
    body        BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- What became of each occurrence that was to wake one, by the id of the occurrence.
CREATE TABLE wake (
    id          TEXT PRIMARY KEY,
    controller  TEXT NOT NULL,
    number      INTEGER NOT NULL,
    state       TEXT NOT NULL,
    body        BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX wake_by_controller ON wake (controller, number);
