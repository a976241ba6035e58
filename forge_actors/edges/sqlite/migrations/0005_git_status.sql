-- The last look at each repository's checkout, and the mark that it is out of date. A
-- mark outlives a restart; a newer one has a larger nonce and takes the older one's place.
CREATE TABLE git_status (
    repo          TEXT PRIMARY KEY REFERENCES repository (id),
    -- The sample as JSON; NULL: there is none yet.
    sample        BLOB,
    sampled_at    REAL,
    -- Dirty while `dirty_nonce` is larger than the nonce that was sampled.
    nonce         INTEGER NOT NULL DEFAULT 0,
    dirty_nonce   INTEGER NOT NULL DEFAULT 0,
    dirty_reason  TEXT,
    dirty_at      REAL,
    failures      INTEGER NOT NULL DEFAULT 0,
    error         TEXT,
    retry_at      REAL
) STRICT, WITHOUT ROWID;
