"""Admissions in memory: the port `Admissions`, for tests that decide themselves.

    admissions = FakeAdmissions()
    admissions.held = trio.Event()  # every `admit` waits for it
    admissions.reason = "the issue was closed"  # nobody is admitted for that

What was admitted is in `given`, in its order, with what is told of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.admissions import Admitted, NotAdmitted

if TYPE_CHECKING:
    from forge_actors.domain.launch import LaunchOrder, ProcessIdentity, Receipt


class FakeDescriptors:
    """Numbers that stand for some; implements `domain.descriptors.Descriptors`."""

    def __init__(self, *numbers: int) -> None:
        self._numbers = numbers
        #: How often somebody closed them.
        self.closed = 0

    @property
    def numbers(self) -> tuple[int, ...]:
        return () if self.closed else self._numbers

    def close(self) -> None:
        self.closed += 1


class Given:
    """One that was admitted."""

    def __init__(self, order: LaunchOrder) -> None:
        self.order = order
        self.descriptors = FakeDescriptors(71, 72)
        self.began: list[ProcessIdentity] = []
        self.ended: list[Receipt] = []


class FakeAdmissions:
    """The port `Admissions`; everything of it is told to who asks."""

    def __init__(self) -> None:
        self.asked: list[LaunchOrder] = []
        self.given: list[Given] = []
        self.held: trio.Event | None = None
        self.reason: str | None = None

    async def admit(self, order: LaunchOrder) -> Admitted | NotAdmitted:
        self.asked.append(order)
        await trio.lowlevel.checkpoint()
        if self.held is not None:
            await self.held.wait()
        if self.reason is not None:
            return NotAdmitted(self.reason)
        given = Given(order)
        self.given.append(given)
        argv = (*order.argv, "--claim", str(len(self.given)))
        return Admitted(
            argv,
            {"GIVEN": "yes"},
            given.descriptors,
            given.began.append,
            given.ended.append,
        )
