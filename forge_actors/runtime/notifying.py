"""Telling somebody of what came into the inbox, by a command of the settings.

At most once an item: that it was told is saved before the command runs, so a crash can
lose a notice and never repeats one. It runs beside everything else, and only where a
command is set.
"""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import trio
from msgspec import Struct, to_builtins
from trio_util import AsyncValue

from forge_actors.domain.changes import ItemMarked
from forge_actors.domain.errors import StoreFailed
from forge_actors.domain.inbox import Mark
from forge_actors.runtime.orders import allowed_environment

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.inbox import Inbox, Item
    from forge_actors.domain.ports import Clock, Store

#: Seconds that one command may take, and between two looks at the inbox.
COMMAND_SECONDS = 10.0
LOOK_SECONDS = 1.0


class NotifySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What is run for each item of the inbox; its JSON is the input."""

    command: tuple[str, ...] = ()


class Notifier:
    """One for each runtime whose settings have a command."""

    def __init__(self, command: tuple[str, ...], store: Store, clock: Clock) -> None:
        self._command = command
        self._store = store
        self._clock = clock
        #: Why the last notice did not go out.
        self.trouble: AsyncValue[str | None] = AsyncValue(None)

    async def run(
        self,
        last: Callable[[], int],
        news: Callable[[int], Awaitable[bool]],
        inbox: Callable[[], Inbox],
    ) -> None:
        """Tell of each item, at the start and after each of the `news` behind the
        `last` event, until there can be no more."""
        going = True
        while going:
            seen = last()
            told = {m.item for m in self._store.inbox_marks() if m.notified_at}
            for item in inbox().items:
                if item.id not in told:
                    await self._tell(item)
            await trio.sleep(LOOK_SECONDS)
            going = await news(seen)

    async def _tell(self, item: Item) -> None:
        mark = Mark(item.id, notified_at=self._clock.now())
        try:
            await self._store.save([ItemMarked(mark)]).wait()
        except StoreFailed:
            return  # without that it could be told twice
        given = json.dumps(to_builtins(item)).encode()
        null = subprocess.DEVNULL
        problem: str | None = f"took longer than {COMMAND_SECONDS:.0f} s"
        try:
            with trio.move_on_after(COMMAND_SECONDS):
                done = await trio.run_process(
                    self._command,
                    stdin=given,
                    stdout=null,
                    stderr=null,
                    check=False,
                    env=allowed_environment(),
                )
                problem = None
                if done.returncode:
                    problem = f"ended with {done.returncode}"
        except OSError as error:
            problem = f"cannot be run: {error.strerror}"
        name = os.path.basename(self._command[0])
        self.trouble.value = problem and f"the notify command {name} {problem}"
