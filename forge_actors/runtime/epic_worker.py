"""The worker of an EPIC: one process that works on one issue, to where it settles.

It inherits two locks and proves that it holds them, and that it is the one that the
last claim of its issue speaks of; else it writes nothing. Then it goes from phase to
phase, and what is saved is always the state between two of them.

It writes in the folder `state` of its issue's namespace and in its worktree, nowhere
else; what git itself writes for a worktree and a branch is in the repository. What it
starts is bound to it and ends with it, however it ends.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio
from msgspec import Struct, structs

from forge_actors.domain.epic import places
from forge_actors.domain.epic.admitted import (
    Admitted,
    NotAdmitted,
    check_claim,
    check_state,
)
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.records import (
    MAX_ASSIGNMENT,
    Assignment,
    decode,
)
from forge_actors.domain.errors import InvalidInput
from forge_actors.edges.epic import inherited
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.edges.git.checkout import GitProgram
from forge_actors.runtime.epic_engine import Engine, Task, say
from forge_actors.runtime.epic_environment import check_programs
from forge_actors.runtime.epic_ground import Ground
from forge_actors.runtime.epic_interrupts import INTERRUPTED, Interrupts
from forge_actors.runtime.epic_settings import EpicSettings, with_agent
from forge_actors.runtime.groups import only_failure
from forge_actors.runtime.settings import Settings, settings_from
from forge_actors.runtime.sources import SETTINGS_FILE, load

if TYPE_CHECKING:
    from forge_actors.domain.epic.places import Place


class WorkerOptions(Struct, frozen=True):
    """What a worker is started with."""

    checkout: str
    #: A file of settings; empty: that of the home.
    config: str
    given: Admitted
    controller_fd: int
    run_fd: int
    #: For the phases that take one, in place of what the settings say.
    agent: str | None = None
    #: Where the records of a plan are: see `RepositoryNode.folder`.
    folder: Place = ()


def work(options: WorkerOptions, home: str) -> int:
    """Work on an issue; the exit status of the process.

    Raises:
        NotAdmitted: it is not to work on it; nothing was written.
        ForgeError: it cannot go on; what is saved is a state between two phases.
    """
    interrupts = Interrupts()
    try:
        return trio.run(_interruptible, options, home, interrupts)
    except BaseExceptionGroup as group:
        raise only_failure(group) from None


async def _interruptible(
    options: WorkerOptions, home: str, interrupts: Interrupts
) -> int:
    with interrupts.ending() as scope:
        return await work_here(options, home)
    assert scope.cancelled_caught, "nothing else leaves it so"
    say(options.given.issue, "interrupted")
    return INTERRUPTED


async def work_here(options: WorkerOptions, home: str) -> int:
    """The same in this process, which has the locks. To cancel it is to interrupt it.

    Raises:
        NotAdmitted, ForgeError: as `work`.
    """
    given = options.given
    try:
        # Before anything is started that could inherit them.
        inherited.keep(options.controller_fd, options.run_fd)
        checkout = await GitProgram().checkout(options.checkout)
        root = FolderRoot(checkout.common_dir)
        try:
            held = options.controller_fd, options.run_fd
            inherited.prove(root, given.issue, *held, options.folder)
            settings = _settings(options, home)
            task = _admitted(root, options, settings.epic)
            check_programs(settings.epic)
        except BaseException:
            root.close()
            raise
    except StateError as error:
        raise NotAdmitted(str(error)) from None
    try:
        ground = Ground(
            options.checkout,
            checkout.common_dir,
            task.path(places.worktree(given.issue)),
            settings.worktree_seconds,
        )
        return await Engine(root, task, settings, ground, Path(home)).work()
    finally:
        root.close()


def _settings(options: WorkerOptions, home: str) -> Settings:
    """Those that the work goes by.

    Raises:
        InvalidInput: they cannot be used.
    """
    path = Path(options.config) if options.config else Path(home) / SETTINGS_FILE
    if options.config and not path.is_file():
        raise NotAdmitted(f"{options.config} is no file of settings")
    settings = _read(path)
    epic = with_agent(settings.epic, options.agent)
    epic.check_ready()
    if options.folder and "pull_request" in epic.effects:
        problem = "a pull_request needs an EPIC of GitHub, and this is a plan"
        raise InvalidInput("epic.effects", problem)
    return structs.replace(settings, epic=epic)


def _read(path: Path) -> Settings:
    """The settings of a file of people, or as a service has written them."""
    if path.suffix != ".json":
        return load(path).settings
    try:
        return settings_from(msgspec.json.decode(path.read_bytes()))
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise NotAdmitted(f"{path} cannot be used: {error}") from None


def _admitted(root: FolderRoot, options: WorkerOptions, epic: EpicSettings) -> Task:
    """What the records say that this worker is to do.

    Raises:
        NotAdmitted: they are about another one.
        StateError: one cannot be read.
    """
    given, folder = options.given, options.folder
    namespace = FileNamespaces(root, folder).look(given.issue)
    if namespace.problem is not None:
        raise NotAdmitted(namespace.problem)
    claim = check_claim(given, namespace.binding, namespace.claims)
    saved = None if namespace.saved is None else namespace.saved.data
    accept = given.accept_config_change
    state = check_state(claim, saved, epic.digest(), accept=accept)
    place = places.within(places.assignment(given.issue), folder)
    data = root.read(place, MAX_ASSIGNMENT)
    if data is None:
        raise NotAdmitted("nothing says what the issue is about")
    told = decode(Assignment, data, MAX_ASSIGNMENT)
    if (told.run_key, told.issue_id) != (claim.run_key, claim.issue_id):
        raise NotAdmitted("what is to be done is that of another issue")
    task = Task(given, claim, told, state, root.path, folder)
    binding, worktree = namespace.binding, task.path(places.worktree(given.issue))
    if binding is not None and binding.worktree != worktree:
        raise NotAdmitted(f"the worktree of the binding is {binding.worktree}")
    return task
