"""Finding agent programs: which adapters there are, and what is on this machine."""

from __future__ import annotations

import os
import re
import shutil
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, cast

from forge_actors.domain.agents import AgentProgram
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.edges.agents.asking import ASK_SECONDS, ask

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.agents import AgentAdapter

#: The group of entry points that name adapters: each is a class without arguments.
GROUP = "forge_actors.agents"
#: Where programs are installed for one user, below the home folder: a service often has
#: a PATH without it.
USERS_OWN = (".local/bin",)

#: What an adapter has, as `AgentAdapter` says.
REQUIRED = (
    *("name", "provider", "program", "stop_signal", "grace", "ends_after_stop"),
    *("variables", "credentials", "invocation", "reader", "keeps", "login"),
)

_VERSION = re.compile(r"\d+(?:\.\d+)+[\w.+-]*")


@cache
def _entry_points() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


#: Those that this program has registered itself.
_registered: dict[str, AgentAdapter] = {}


def register(of: AgentAdapter) -> None:
    """Have an adapter be known to every runtime in this process, in place of an entry
    point. One that was registered before under its name is replaced.

    Raises:
        InvalidInput: it is not fit to be one, or an entry point has its name.
    """
    if lacking := [name for name in REQUIRED if not hasattr(of, name)]:
        raise InvalidInput("adapter", f"it has no {', '.join(lacking)}")
    if of.name in _entry_points():
        raise InvalidInput("adapter", f"{of.name!r} is installed, by an entry point")
    _registered[of.name] = of


def adapter_names() -> tuple[str, ...]:
    """All that `--agent` takes."""
    return tuple(sorted({*_entry_points(), *_registered}))


def adapter(name: str, *, field: str = "agent") -> AgentAdapter:
    """The adapter of this name; its module is loaded now and not before.

    Raises:
        InvalidInput: there is none.
        Refused: it cannot be loaded.
    """
    if name in _registered:
        return _registered[name]
    point = _entry_points().get(name)
    if point is None:
        known = adapter_names()
        raise InvalidInput(field, f"{name!r} is no known agent", allowed=known)
    return _loaded(point)


@cache
def _loaded(point: EntryPoint) -> AgentAdapter:
    where = f"the adapter of the agent {point.name!r} ({point.value})"
    try:
        made = point.load()()
        lacking = [name for name in REQUIRED if not hasattr(made, name)]
    except Exception as error:  # it is somebody else's code
        raise Refused(f"{where} cannot be loaded: {error}") from error
    if lacking:
        raise Refused(f"{where} cannot be used: it has no {', '.join(lacking)}")
    return cast("AgentAdapter", made)


def override_of(name: str) -> str:
    """The variable that says which program is meant, wherever it is."""
    return f"FORGE_{re.sub(r'[^A-Z0-9]', '_', name.upper())}_EXECUTABLE"


def find(of: AgentAdapter, env: Mapping[str, str]) -> str:
    """The path of its program, by the environment that its jobs have.

    Raises:
        Refused: it is not there; the message says where it was searched.
    """
    assert of.program is not None, "the arguments of a job name it"
    named = env.get(override_of(of.name))
    if named:
        if os.path.isabs(named) and os.access(named, os.X_OK):
            return named
        raise Refused(f"{override_of(of.name)} is {named!r}, which is no program")
    folders = _folders(env)
    found = shutil.which(of.program, path=os.pathsep.join(folders))
    if found is None:
        raise Refused(
            f"the program {of.program!r} of the agent {of.name!r} was not found in"
            f" {os.pathsep.join(folders) or 'an empty PATH'}; install it, or start the"
            f" service with {override_of(of.name)}=/path/to/it"
        )
    return os.path.abspath(found)


def places(of: AgentAdapter, env: Mapping[str, str]) -> list[str]:
    """The files one of which its program would be."""
    named = env.get(override_of(of.name))
    if named:
        return [named]
    return [os.path.join(folder, of.program or "") for folder in _folders(env)]


def _folders(env: Mapping[str, str]) -> list[str]:
    """Where programs are looked for."""
    folders = [folder for folder in env.get("PATH", "").split(os.pathsep) if folder]
    if home := env.get("HOME"):
        folders += [os.path.join(home, own) for own in USERS_OWN]
    return folders


def probe(
    of: AgentAdapter, env: Mapping[str, str], seconds: float = ASK_SECONDS
) -> AgentProgram:
    """What there is of it on this machine. It asks nobody else, and takes some of the
    `seconds` in which the program has to say its version."""
    try:
        path = find(of, env)
    except Refused as error:
        return AgentProgram(of.name, of.provider, detail=str(error))
    answer = ask([path, "--version"], env, seconds)
    if answer.problem is not None:
        last = (answer.stderr or answer.stdout).splitlines()[-1:]
        detail = ": ".join([answer.problem, *last])
        return AgentProgram(of.name, of.provider, path, None, False, detail)
    version = _VERSION.search(answer.stdout)
    login = of.login(path, env)
    return AgentProgram(
        of.name,
        of.provider,
        path,
        version[0].rstrip(".") if version else None,
        login.ok,
        login.detail,
    )
