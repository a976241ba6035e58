"""Worktrees of jobs: what is in them is saved before they are removed."""
