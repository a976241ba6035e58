-- What is trusted of each repository: `body` is the content that a person took over, in
-- JSON, and `differs` how the files in the checkout are not that any more.
CREATE TABLE trust (
    repo        TEXT PRIMARY KEY REFERENCES repository (id),
    body        BLOB NOT NULL,
    differs     BLOB
) STRICT, WITHOUT ROWID;
