"""EPIC mode: the issues of a graph, one worker and one worktree for each."""
