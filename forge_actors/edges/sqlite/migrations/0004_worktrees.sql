-- Linked work trees that were made for jobs, in the home. `id` is the job's; the job may
-- be forgotten before its worktree is.
CREATE TABLE worktree (
    id            TEXT PRIMARY KEY,
    repo          TEXT NOT NULL REFERENCES repository (id),
    path          TEXT NOT NULL,
    branch        TEXT NOT NULL,
    made_at       REAL NOT NULL,
    state         TEXT NOT NULL CHECK (
        state = 'making' OR state = 'ready' OR state = 'removing' OR state = 'removed'
    ),
    base          TEXT,
    base_commit   TEXT,
    kept          INTEGER NOT NULL DEFAULT 0 CHECK (kept IN (0, 1)),
    reason        TEXT,
    removed_at    REAL
) STRICT, WITHOUT ROWID;

CREATE INDEX worktree_repo ON worktree (repo);
