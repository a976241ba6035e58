-- The last look at each repository's checkout, and the mark that it is out of date. A
-- mark outlives a restart; a newer one has a larger nonce and takes the older one's place.
CREATE TABLE git_status (
    repo          TEXT PRIMARY KEY REFERENCES repository (id),
    -- What the last good look found, as JSON, and when; NULL: there was none yet.
    sample        BLOB,
    sampled_at    REAL,
    -- Whether jobs of the repository ran then.
    busy          INTEGER NOT NULL DEFAULT 0 CHECK (busy = 0 OR busy = 1),
    -- The number of the last dispatch before it.
    fence         INTEGER NOT NULL DEFAULT 0,
    -- The mark that it answered.
    nonce         INTEGER NOT NULL DEFAULT 0,
    -- When it was tried last, well or not.
    looked_at     REAL NOT NULL DEFAULT 0,
    -- The mark that no look has answered yet; NULL: there is none.
    dirty_nonce   INTEGER,
    dirty_reason  TEXT,
    dirty_at      REAL,
    dirty_source  TEXT,
    failures      INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    error         TEXT,
    retry_at      REAL,
    CHECK ((dirty_nonce IS NULL) = (dirty_reason IS NULL)),
    CHECK ((dirty_nonce IS NULL) = (dirty_at IS NULL))
) STRICT, WITHOUT ROWID;
