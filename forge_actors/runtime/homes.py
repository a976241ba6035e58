"""What is where in a home: everything there that is ours has its name here."""

from __future__ import annotations

import fcntl
import re
from typing import TYPE_CHECKING

from forge_actors.domain.damage import FOLDER, MARKER
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.edges.mounts import shared_with_others

if TYPE_CHECKING:
    from pathlib import Path

#: The jobs, the repositories and their history.
STORE_FILE = "store.sqlite"
#: The id of the installation.
INSTALLATION_FILE = "instance"
#: The output of jobs.
LOGS = "logs"
#: What node agents write down of attempts, until the store has it.
RECEIPTS = "receipts"
#: Worktrees of jobs: a folder a repository, by its id, and in that one a job.
WORKTREES = "worktrees"
#: What was saved of worktrees before they were removed: a folder each.
PRESERVED = "preserved"
#: What agents are asked to do, a file a prompt.
PROMPTS = "prompts"
#: Files that were collected of jobs, a folder a job and in that one an attempt.
ARTIFACTS = "artifacts"
#: What jobs find there of earlier ones, a folder an attempt, while it runs.
INPUTS = "inputs"
#: Programs that jobs find in place of git and gh, a folder for what they may do.
GUARD = "guard"
#: Marks of schedules that go live with the next start.
ACTIVATIONS = "activations"
#: What a clean-up is about to remove.
REMOVING = "removing"
#: Folders in which something is made that is put elsewhere when it is whole.
WORKSHOPS = ("importing", "restoring")
#: The end of the name of a draft: once whole, it takes the place of another file.
DRAFT = ".new"
#: Locked by a runtime as long as it has the home.
LOCK_FILE = "runtime.lock"
#: Locked by a node agent as long as it lives; says which one that is.
AGENT_LOCK = "agent.lock"
#: What clean-ups removed and why, one line each.
REMOVED_LOG = "removed.jsonl"
#: What a service tells of itself there, for those who cannot ask it.
RUNTIME = "runtime"
#: What a service wrote down of itself when it was told to.
DIAGNOSTICS = "diagnostics"
#: Repositories that a job file had cloned.
CLONES = "clones"
#: Stores that a restore has replaced.
REPLACED = "replaced"
#: What a manager of services starts.
LAUNCHER = "launch"
#: What programs show that ask over TCP.
TOKEN_FILE = "api-token"  # noqa: S105 - the name of the file
#: What led a browser to a login link last.
OPEN_FILE = "open.html"
#: Ids that repositories here had already when this home was imported: those of the home
#: that was exported, which may be in use beside it. One a line.
SHARED_IDS = "shared-ids"

#: Every name that we give to something in a home. A draft of a file, or the file that
#: says where a socket is, has the name of the file and more behind it.
NAMES = (
    STORE_FILE,
    INSTALLATION_FILE,
    MARKER,
    LOCK_FILE,
    AGENT_LOCK,
    OPEN_FILE,
    "agent.json",
    "agent.log",
    "agent.sock",
    "control.sock",
    LAUNCHER,
    "mcp.sock",
    "release.json",
    "release.lock",
    REMOVED_LOG,
    "service.log",
    "settings.toml",
    SHARED_IDS,
    "templates.toml",
    TOKEN_FILE,
)
FOLDERS = (
    LOGS,
    RECEIPTS,
    WORKTREES,
    PRESERVED,
    PROMPTS,
    ARTIFACTS,
    INPUTS,
    GUARD,
    ACTIVATIONS,
    REMOVING,
    REPLACED,
    CLONES,
    FOLDER,
    RUNTIME,
    DIAGNOSTICS,
    *WORKSHOPS,
    "secrets",
)


def is_ours(name: str) -> bool:
    """Whether something of this name in a home was put there by us."""
    return name in FOLDERS or any(
        name == ours or name.startswith((f"{ours}.", f"{ours}-", f".{ours}."))
        for ours in NAMES
    )


def is_draft(name: str) -> bool:
    """Whether it is ours and was to be there for a moment only."""
    return name.endswith(DRAFT) and is_ours(name)


def refuse_shared(home: Path) -> None:
    """Refuse a home that more than one machine may write to.

    Raises:
        InvalidInput: saying what to do.
    """
    if problem := shared_problem(str(home)):
        raise InvalidInput("home", problem)


def shared_problem(home: str) -> str | None:
    """Why a home may not be where it is, or None."""
    kind = shared_with_others(home)
    if kind is None:
        return None
    return (
        f"{home} is on a file system of the kind {kind}, where locks and shared memory"
        " do not hold between machines; give a folder on a disk of this machine, with"
        " --home or FORGE_CONTROLLER_HOME"
    )


def refuse_living_agent(home: Path) -> None:
    """Refuse to go on while a node agent of the home lives, and has jobs.

    Raises:
        Refused: as it says, with the way to end them.
    """
    try:
        with (home / AGENT_LOCK).open(encoding="ascii", errors="replace") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = re.search(r"(\d+)\s*$", file.read(64))
                named = f" (pid {pid[1]})" if pid else ""
                end = f"; kill {pid[1]} ends them" if pid else ""
                raise Refused(
                    f"jobs of {home} still run under its node agent{named}:"
                    f" wait until they have ended{end}"
                ) from None
    except FileNotFoundError:
        return
