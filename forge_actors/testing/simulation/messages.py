"""What the simulated launcher and node agent tell each other.

The name of a message is that of its point: `send start`, `take start` and so on.
"""

from __future__ import annotations

from msgspec import Struct

from forge_actors.domain.launch import (
    Ending,
    LaunchOrder,
    ProcessIdentity,
    Receipt,
)

Key = tuple[str, int]


class Hello(Struct, frozen=True):
    """The first message of a connection: who the service is."""

    epoch: int
    bound: bool


class Start(Struct, frozen=True):
    order: LaunchOrder


class Stop(Struct, frozen=True):
    key: Key
    grace: float | None
    ending: Ending


class Pause(Struct, frozen=True):
    key: Key


class Resume(Struct, frozen=True):
    key: Key


class Forget(Struct, frozen=True):
    key: Key


class Ready(Struct, frozen=True):
    """The answer to `Hello`: what runs, and the receipts nobody has forgotten."""

    running: dict[Key, ProcessIdentity]
    receipts: tuple[Receipt, ...]


class Started(Struct, frozen=True):
    key: Key
    identity: ProcessIdentity


class Exited(Struct, frozen=True):
    receipt: Receipt


Order = Hello | Start | Stop | Pause | Resume | Forget
Report = Ready | Started | Exited


def name_of(message: Order | Report) -> str:
    return type(message).__name__.lower()
