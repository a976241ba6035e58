"""Where the files of EPIC runs are, below the git common directory of a repository.

A place is the names of its folders and its own, from there on.
"""

from __future__ import annotations

import re

from forge_actors.domain.epic.errors import StateError

Place = tuple[str, ...]

FOLDER = "forge-actors"
#: Who has the repository; the lock itself is on the git common directory.
CONTROLLER: Place = (FOLDER, "controller.lock")
ISSUES: Place = (FOLDER, "issues")
RUN_LOCK = "run.lock"
EPICS: Place = (FOLDER, "epics")
STATE = "state.json"
#: How far a run of a single issue is that belongs to no EPIC.
STANDALONE: Place = (FOLDER, "standalone", STATE)

#: Bytes of a name, and names of a place.
MAX_NAME = 255
MAX_DEPTH = 16
#: What a file is written as until it is whole.
_UNFINISHED = re.compile(r"\.unfinished-[0-9a-f]{16}")


def namespace(issue: int) -> Place:
    """The folder of one issue."""
    return (*ISSUES, str(issue))


def run_lock(issue: int) -> Place:
    """The lock of one issue."""
    return (*namespace(issue), RUN_LOCK)


def binding(issue: int) -> Place:
    """Whose the folder of an issue is."""
    return (*namespace(issue), "binding.json")


def claims(issue: int) -> Place:
    """The folder of an issue's claims."""
    return (*namespace(issue), "claims")


def claim(issue: int, generation: int) -> Place:
    return (*claims(issue), f"{generation}.json")


def state(issue: int) -> Place:
    """How far the work on an issue is."""
    return (*namespace(issue), "state", STATE)


def assignment(issue: int) -> Place:
    """What the worker of an issue is to do."""
    return (*namespace(issue), "issue.json")


def worker_home(issue: int) -> Place:
    """The home of the runtime in which the phases of an issue are jobs."""
    return (*namespace(issue), "state", "runtime")


def worktree(issue: int) -> Place:
    """Where the work on an issue is done."""
    return (FOLDER, "worktrees", str(issue))


def log(issue: int, generation: int) -> Place:
    """What the worker of one claim printed."""
    return (*namespace(issue), "workers", f"{generation}.log")


def scheduler(epic: int) -> Place:
    """What is told of the runs of an EPIC."""
    return (*EPICS, str(epic), "scheduler.json")


def settings(epic: int) -> Place:
    """What workers of a service go by."""
    return (*EPICS, str(epic), "settings.json")


def stop(epic: int) -> Place:
    """What somebody asks of a run of an EPIC."""
    return (*EPICS, str(epic), "stop.json")


def within(place: Place, folder: Place) -> Place:
    """The same place of issues that are kept apart, in a folder of ours."""
    return (*place[:1], *folder, *place[1:])


def unfinished(token: str) -> str:
    """The name of a file that is being written; the token is 16 hexadecimal digits."""
    return f".unfinished-{token}"


def is_unfinished(name: str) -> bool:
    """Whether this is what a write has left that was cut short."""
    return _UNFINISHED.fullmatch(name) is not None


def path(root: str, place: Place) -> str:
    """A place as the path of a file."""
    return "/".join((root.rstrip("/"), *place))


def told(place: Place) -> str:
    """A place as people read it, whatever is in its names."""
    return "/".join(ascii(name)[1:-1] for name in place) or "."


def check(place: Place) -> None:
    """Refuse what is no place below the root.

    Raises:
        StateError: a name in it leads elsewhere, or nowhere.
    """
    if len(place) > MAX_DEPTH:
        raise StateError(f"a place of {len(place)} names: {MAX_DEPTH} are the most")
    for name in place:
        if name in (".", "..") or "/" in name or "\0" in name or not _fits(name):
            raise StateError(f"{told(place)}: {name!a} is no name of a file here")


def _fits(name: str) -> bool:
    """Whether a file can have a name of this size."""
    try:
        size = len(name.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return False
    return 0 < size <= MAX_NAME
