"""GitHub as it is read: places, issues, what answers mean, and the port for it."""
