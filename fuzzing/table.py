"""All targets, by what they read."""

from __future__ import annotations

from fuzzing.targets import (
    agents,
    doors,
    files,
    git,
    github,
    http,
    node,
    records,
    shown,
    words,
)

TARGETS = (
    *words.TARGETS,
    *files.TARGETS,
    *agents.TARGETS,
    *github.TARGETS,
    *git.TARGETS,
    *http.TARGETS,
    *doors.TARGETS,
    *node.TARGETS,
    *records.TARGETS,
    *shown.TARGETS,
)
BY_NAME = {target.name: target for target in TARGETS}
assert len(BY_NAME) == len(TARGETS), "each has a name of its own"
