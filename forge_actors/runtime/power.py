"""Keeping the machine awake while jobs run, where somebody wants that and it can be.

Nothing ever depends on it: a machine that cannot be kept awake runs its jobs as well.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal, Protocol

import trio
from msgspec import Struct

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput
from forge_actors.runtime.readiness import message_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

log = logging.getLogger(__name__)

#: Seconds: how short and how long the grace may be.
LEAST, MOST = 5.0, 1800.0


class PowerSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether the machine is kept from sleeping while jobs run."""

    #: `auto`: where the system can do that, and without a word where it cannot.
    hold: bool | Literal["auto"] = "auto"
    #: It may sleep after nothing has run for so long, 5 s to 30 min.
    idle_grace: str | float = "5m"

    @property
    def grace(self) -> float:
        """
        Raises:
            InvalidInput: naming the field.
        """
        name = "power.idle_grace"
        seconds = parse_duration(self.idle_grace, field=name)
        if not LEAST <= seconds <= MOST:
            raise InvalidInput(name, f"must be from {LEAST:g} s to {MOST / 60:g} min")
        return seconds


class Activity(Protocol):
    """What is known of the jobs of a runtime."""

    def runs_jobs(self) -> bool: ...

    async def news(self) -> bool:
        """Wait until something happened; False: nothing does any more."""


class Helper(Protocol):
    """What holds off sleep, as long as it lives."""

    async def wait(self) -> int: ...


class Power:
    """That of one service. `run` is its task."""

    def __init__(
        self,
        settings: PowerSettings,
        activity: Activity,
        inhibitor: Callable[[], list[str] | None],
        holding: Callable[[list[str]], AbstractAsyncContextManager[Helper]],
    ) -> None:
        self._settings = settings
        self._activity = activity
        self._inhibitor = inhibitor
        self._holding = holding

    async def run(self) -> None:
        """Return when nothing is to be held off, now or ever."""
        command = self._inhibitor() if self._settings.hold else None
        if command is None:
            if self._settings.hold is True:
                log.warning("nothing here can keep the machine from sleeping")
            return
        while await self._begins():
            try:
                async with (
                    self._holding(command) as helper,
                    trio.open_nursery() as both,
                ):
                    both.start_soon(self._until_it_ends, helper)
                    await self._until_idle()
                    both.cancel_scope.cancel()
            # Whatever it is, jobs run all the same.
            except Exception as error:  # noqa: BLE001
                words = message_of(error)
                log.warning("the machine is not kept from sleeping: %s", words)
                return

    async def _begins(self) -> bool:
        """Wait for a job that runs; False if there will be none."""
        while not self._activity.runs_jobs():
            if not await self._activity.news():
                return False
        return True

    async def _until_idle(self) -> None:
        """Return when nothing has run for the grace, which is looked at once in it."""
        grace = self._settings.grace
        while True:
            await trio.sleep(grace)
            with trio.move_on_after(grace) as limit:
                if not await self._begins():
                    return
            if limit.cancelled_caught:
                return

    async def _until_it_ends(self, helper: Helper) -> None:
        status = await helper.wait()
        say = log.warning if self._settings.hold is True else log.info
        say("the machine is not kept from sleeping any more: status %s", status)
