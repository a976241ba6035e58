-- What the clean-up reads, and what the owner of the store does for it.

-- name: clean_classes
SELECT name, visited_at, cursor FROM clean_class;

-- name: history_range
-- The first number there is, and that of the last row.
SELECT min(first), max(first) FROM history;
