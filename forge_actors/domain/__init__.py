"""Values and decisions. Nothing here waits, reads a clock or touches a file."""
