"""What lies where the worktrees of a home are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from forge_actors.edges.cleanup.folders import Unsafe
from forge_actors.edges.cleanup.measuring import Measure

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.edges.cleanup.folders import Folder

#: The folder of a home with them, in one folder for each repository.
WORKTREES = "worktrees"
#: In the name of what was in the way of a worktree, and may be somebody's only copy.
ASIDE = ".left-"
#: Seconds of one visit for counting what all of them take; beyond it is not known.
MEASURING = 5.0


def names_in(around: Folder, may_go_on: Callable[[], bool]) -> list[str]:
    """The paths in the home of everything there that can be a worktree, or is one that
    was left; without time those that were seen until then."""
    found: list[str] = []
    for repository in around.entries():
        path = f"{WORKTREES}/{repository.name}"
        try:
            folder = around.folder(repository.name)
        except Unsafe:
            found.append(path)
            continue
        if folder is None:
            continue
        with folder:
            for entry in folder.entries():
                if not may_go_on():
                    return found
                found.append(f"{path}/{entry.name}")
    return found


def why_left(path: str) -> str:
    """What people are told of something there that is none of ours."""
    if ASIDE in path:
        return "it was in the way of a worktree: look into it, and remove it yourself"
    return "no worktree that we know has such a name"


def size_of_all(around: Folder, may_go_on: Callable[[], bool]) -> int | None:
    """Bytes that all of it takes on the disk; None: there was no time to see it all."""
    until = time.monotonic() + MEASURING
    in_time = True

    def may_measure() -> bool:
        nonlocal in_time
        in_time = in_time and may_go_on() and time.monotonic() < until
        return in_time

    size = Measure(may_measure).contents(around).bytes
    return size if in_time else None
