"""For other programs: the verbs of a service over its socket.

`connect` gives a client under trio or asyncio, `BlockingClient` is the same for a
program without an event loop.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.client.aio import Client as Client
    from forge_actors.client.aio import connect as connect
    from forge_actors.client.blocking import BlockingClient as BlockingClient

_HOMES = {
    "BlockingClient": "forge_actors.client.blocking",
    "Client": "forge_actors.client.aio",
    "connect": "forge_actors.client.aio",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - the table is the one list of public names


def __getattr__(name: str) -> object:
    # On first use: the command line shares this package and must not load anyio.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
