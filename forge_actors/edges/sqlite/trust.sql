-- What is trusted of repositories.

-- name: trusted
SELECT body, differs FROM trust WHERE repo = ?;

-- name: trusting
-- The repositories of which anything is trusted.
SELECT repo FROM trust ORDER BY repo;

-- name: differing
-- Those whose files say something else than what is trusted.
SELECT repository.id, repository.name, differs
FROM trust JOIN repository ON repository.id = trust.repo
WHERE differs IS NOT NULL ORDER BY repository.name;

-- name: save_trust
INSERT OR REPLACE INTO trust (repo, body) VALUES (?, ?);

-- name: save_differs
UPDATE trust SET differs = ? WHERE repo = ?;

-- name: remove_trust
DELETE FROM trust WHERE repo = ?;
