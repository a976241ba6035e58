"""Forge Actors: run the long jobs of many git repositories on one machine.

The rooms, from the inside out. An arrow says "may import".

    domain    values and decisions, pure: no clock, no files, no trio
    actors    one module an actor, its messages and its loop      -> domain
    edges     the outside, each piece behind a port of domain     -> domain
    runtime   wires the actors to the edges, starts and stops     -> actors, edges
    client    other programs speak to a running service           -> domain
    cli       the command line, one verb a file                   -> client, runtime
    testing   fakes and contract checks for users and tests       -> every room

Data goes one way: an entry point builds settings, the runtime builds the edges
and hands them to the actors as ports, the actors ask the domain what to do, and
the domain only answers.

The public names below are loaded on first use, so that a client command or the
node agent never pays for the runtime.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.domain.errors import ForgeError as ForgeError
    from forge_actors.domain.errors import InvalidInput as InvalidInput
    from forge_actors.domain.errors import NotFound as NotFound
    from forge_actors.domain.errors import Refused as Refused
    from forge_actors.domain.errors import Unavailable as Unavailable
    from forge_actors.runtime.handles import JobHandle as JobHandle
    from forge_actors.runtime.handles import Runtime as Runtime
    from forge_actors.runtime.handles import WorkflowHandle as WorkflowHandle
    from forge_actors.runtime.runtime import open_runtime as open_runtime
    from forge_actors.runtime.settings import Settings as Settings

__version__ = "0.1.0"

_HOMES = {
    "ForgeError": "forge_actors.domain.errors",
    "InvalidInput": "forge_actors.domain.errors",
    "NotFound": "forge_actors.domain.errors",
    "Refused": "forge_actors.domain.errors",
    "Unavailable": "forge_actors.domain.errors",
    "JobHandle": "forge_actors.runtime.handles",
    "Runtime": "forge_actors.runtime.handles",
    "open_runtime": "forge_actors.runtime.runtime",
    "Settings": "forge_actors.runtime.settings",
    "WorkflowHandle": "forge_actors.runtime.handles",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - the table is the one list of public names


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
