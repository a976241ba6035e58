"""All targets, by what they read."""

from __future__ import annotations

from fuzzing.targets import (
    agents,
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
    *node.TARGETS,
    *records.TARGETS,
    *shown.TARGETS,
)
BY_NAME = {target.name: target for target in TARGETS}
assert len(BY_NAME) == len(TARGETS), "each has a name of its own"
