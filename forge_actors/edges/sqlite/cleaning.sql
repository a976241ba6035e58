-- What the clean-up reads, and what the owner of the store does for it.

-- name: clean_classes
SELECT name, visited_at, cursor FROM clean_class;

-- name: history_range
-- The first number there is, and that of the last row.
SELECT min(first), max(first) FROM history;

-- name: worktrees_to_clean
-- Those that are there, each with its repository and the job that it was made for.
SELECT worktree.id, worktree.repo, worktree.path, branch, made_at, worktree.state, base,
    base_commit, kept, reason, worktree.removed_at, repository.name, common_dir, device,
    inode, job.state, finished_at
FROM worktree JOIN repository ON repository.id = worktree.repo
    LEFT JOIN job ON job.id = worktree.id
WHERE worktree.state <> 'removed' ORDER BY made_at, worktree.id;

-- name: worktree_users
-- The states of the jobs that a worktree was made for, or that name its folder.
SELECT state FROM job
WHERE finished_at IS NULL AND (id = ?1 OR instr(spec, CAST(?2 AS BLOB)) > 0);

-- name: repository_place
SELECT name, common_dir, device, inode FROM repository WHERE id = ?;
