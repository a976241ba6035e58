"""Telling somebody of what came into the inbox, by a command or a webhook.

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
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.webhooks import NotDelivered, parse_target, refusal
from forge_actors.runtime.orders import allowed_environment
from forge_actors.runtime.secrets import check_name
from forge_actors.runtime.webhook_settings import shown_url
from forge_actors.runtime.webhooks import Payload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.inbox import Inbox, Item
    from forge_actors.domain.ports import Clock, Store
    from forge_actors.domain.settings import Value
    from forge_actors.runtime.webhooks import Mailer

#: Seconds that one command may take, and between two looks at the inbox.
COMMAND_SECONDS = 10.0
LOOK_SECONDS = 1.0


class NotifySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Who is told of each item of the inbox: a command, whose input is its JSON, and a
    URL that it is sent to, signed if there is a secret."""

    command: tuple[str, ...] = ()
    webhook: str | None = None
    #: The name of a secret.
    secret: str | None = None

    def __bool__(self) -> bool:
        return bool(self.command) or self.webhook is not None

    def check(self) -> None:
        """Check what the types do not tell.

        Raises:
            InvalidInput: naming the field.
        """
        if self.webhook is not None:
            parse_target(self.webhook, field="notify.webhook")
        if self.secret is not None:
            check_name(self.secret, field="notify.secret")

    def values(self) -> dict[str, Value]:
        """What is shown of it: of the URL only where it leads."""
        url = None if self.webhook is None else shown_url(self.webhook)
        return {"notify.webhook": url}


class Notifier:
    """One for each runtime whose settings name somebody."""

    def __init__(
        self, settings: NotifySettings, store: Store, clock: Clock, mailer: Mailer
    ) -> None:
        self._settings = settings
        self._store = store
        self._clock = clock
        self._mailer = mailer
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
        problems = []
        if self._settings.command:
            problems.append(await self._run(self._settings.command, item))
        if self._settings.webhook is not None:
            problems.append(await self._post(self._settings.webhook, item))
        self.trouble.value = "; ".join(filter(None, problems)) or None

    async def _post(self, url: str, item: Item) -> str | None:
        """Send it once, whatever becomes of that."""
        what = Payload("inbox.item", item.since or timestamp(self._clock.wall()), item)
        try:
            answer = await self._mailer.tell(
                url, self._settings.secret, COMMAND_SECONDS, f"inbox.{item.id}", what
            )
        except NotDelivered as error:
            return f"the notify webhook was not told: {error}"
        finally:
            with trio.CancelScope(shield=True):
                await self._mailer.close()
        why = refusal(answer)
        return None if why is None else f"the notify webhook was not told: {why}"

    async def _run(self, command: tuple[str, ...], item: Item) -> str | None:
        given = json.dumps(to_builtins(item)).encode()
        null = subprocess.DEVNULL
        problem: str | None = f"took longer than {COMMAND_SECONDS:.0f} s"
        try:
            with trio.move_on_after(COMMAND_SECONDS):
                done = await trio.run_process(
                    command,
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
        name = os.path.basename(command[0])
        return problem and f"the notify command {name} {problem}"
