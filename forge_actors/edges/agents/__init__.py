"""The programs of agents: one adapter a module, found by entry points."""
