"""Programs that stand before git and gh in the PATH of jobs that are held back."""
