"""Attempts whose receipts the agent may drop, told to it together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.node import wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Struct

    from forge_actors.edges.node.attempt import Key

#: Receipts the agent keeps at most although they are saved; it costs one message each.
FORGET_TOGETHER = 64


class Forgotten:
    """Those that the agent was not told yet."""

    def __init__(self, send: Callable[[Struct], None]) -> None:
        self._send = send
        self._keys: list[Key] = []

    def add(self, key: Key) -> None:
        self._keys.append(key)
        if len(self._keys) >= FORGET_TOGETHER:
            self.tell()

    def tell(self) -> None:
        if self._keys:
            self._send(wire.Forget(self._keys))
            self._keys = []
