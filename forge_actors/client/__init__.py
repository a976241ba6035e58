"""For other programs: the verbs of a service over its socket, under trio or asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.client.aio import Client as Client
    from forge_actors.client.aio import connect as connect

__all__ = ["Client", "connect"]


def __getattr__(name: str) -> object:
    # On first use: the command line shares this package and must not load anyio.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from forge_actors.client import aio

    return getattr(aio, name)
