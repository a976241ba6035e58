-- Effects that the last attempt of a job was kept from, as a JSON array.
ALTER TABLE job ADD COLUMN refused_effects TEXT;
CREATE INDEX job_refused_effects ON job (id) WHERE refused_effects IS NOT NULL;

-- How far each webhook is: the last event that it was told, or that was not for it; and
-- why it is told nothing any more. `target` tells its URL from others.
CREATE TABLE webhook (
    name           TEXT PRIMARY KEY,
    after          INTEGER NOT NULL,
    target         TEXT NOT NULL,
    failing_since  REAL,
    detail         TEXT NOT NULL,
    closed         TEXT CHECK (closed IN ('suspended', 'gone'))
) STRICT, WITHOUT ROWID;
