"""Inputs in memory: the port `Inputs` without a file.

    inputs = FakeInputs()
    inputs.held = trio.Event()  # every `place` waits for it
    inputs.problem = "job 1 kept no artifacts"  # every `place` fails with it

It keeps the contract of `inputs_contract.py`, which the real one keeps too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.inputs import InputsMissing

if TYPE_CHECKING:
    from forge_actors.domain.inputs import InputsWanted


class FakeInputs:
    """The port `Inputs` over a set of folders."""

    def __init__(self) -> None:
        self.folders: set[str] = set()
        self.held: trio.Event | None = None
        self.problem: str | None = None

    async def place(self, wanted: InputsWanted) -> None:
        await trio.lowlevel.checkpoint()
        self.folders.add(wanted.folder)
        if self.held is not None:
            await self.held.wait()
        if self.problem is not None:
            self.folders.discard(wanted.folder)
            raise InputsMissing(self.problem)

    async def remove(self, folder: str) -> None:
        await trio.lowlevel.checkpoint()
        self.folders.discard(folder)
