"""Webhooks: a task for each, which tells its events in their order, each at least once.

What a hook was told is saved when its receiver took it, so a crash in between tells it
once more, under the same id. The queue is the event log: nothing is held in memory but
the page that is being told, and a task without news waits for the next event.
"""

from __future__ import annotations

import logging
import random
from functools import partial
from typing import TYPE_CHECKING, Protocol

import trio
from msgspec import Struct, json, structs

from forge_actors.domain.changes import HookChanged
from forge_actors.domain.errors import NotFound, Refused, StoreFailed
from forge_actors.domain.events import Event, EventQuery
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.webhooks import (
    MAX_DETAIL,
    Delivery,
    HookMark,
    HookView,
    NotDelivered,
    delay,
    fingerprint,
    is_gone,
    parse_target,
    refusal,
    sign,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.events import EventPage, EventView
    from forge_actors.domain.ports import Clock, Store
    from forge_actors.domain.webhooks import Answered, Closing, Sender
    from forge_actors.runtime.secrets import SecretFolder
    from forge_actors.runtime.webhook_settings import WebhookTable

log = logging.getLogger(__name__)

#: Events that are told before it is saved how far a hook is.
SAVED_AFTER = 50


class Events(Protocol):
    """The event log, as far as a hook reads it."""

    @property
    def last(self) -> int: ...

    async def page(self, query: EventQuery, *, wait: bool) -> EventPage: ...


class Payload(Struct, frozen=True):
    """The body of a delivery."""

    type: str
    timestamp: str
    data: object


class Mailer:
    """Signs what is to be told, and tells it once."""

    def __init__(
        self, sender: Sender, secrets: SecretFolder, clock: Clock, chance: random.Random
    ) -> None:
        self._sender = sender
        self._secrets = secrets
        self._clock = clock
        self.chance = chance

    async def tell(
        self, url: str, secret: str | None, seconds: float, message: str, what: Payload
    ) -> Answered:
        """Tell it once.

        Raises:
            NotDelivered: there was no answer, or no secret to sign with.
        """
        body = json.encode(what)
        moment = int(self._clock.wall())
        headers = {
            "user-agent": "forge-actors",
            "webhook-id": message,
            "webhook-timestamp": str(moment),
        }
        if secret is not None:
            try:
                key = self._secrets.read(secret)
            except (NotFound, StoreFailed) as error:
                raise NotDelivered(f"it cannot be signed: {error}") from None
            headers["webhook-signature"] = sign(key, message, moment, body)
        target = parse_target(url, field="url")
        return await self._sender.send(Delivery(target, headers, body, seconds))

    async def close(self) -> None:
        await self._sender.close()


class Hook:
    """One webhook."""

    def __init__(
        self,
        table: WebhookTable,
        mailer: Mailer,
        events: Events,
        store: Store,
        clock: Clock,
        instance: str,
    ) -> None:
        self._table = table
        self._mailer = mailer
        self._events = events
        self._store = store
        self._clock = clock
        self._instance = instance
        self._opened = trio.Event()
        self._unsaved = 0
        url = fingerprint(table.url)
        known = {mark.name: mark for mark in store.webhooks()}.get(table.name)
        mark = known or HookMark(table.name, events.last, url)
        # Of a store that was restored it may have been told what never was.
        mark = structs.replace(mark, after=min(mark.after, events.last))
        if mark.target != url:
            # Somebody has put it right, or it is another receiver.
            mark = HookMark(table.name, mark.after, url)
        self.mark = mark
        if mark != known:
            store.save([HookChanged(mark)], lazy=True)

    @property
    def name(self) -> str:
        return self._table.name

    @property
    def trouble(self) -> str | None:
        """Why it is told nothing now."""
        mark = self.mark
        if mark.closed is not None:
            return f"the webhook {self.name} is {mark.closed}: {mark.detail}"
        if mark.failing_since is None:
            return None
        since = timestamp(mark.failing_since)
        return f"the webhook {self.name} fails since {since}: {mark.detail}"

    def view(self) -> HookView:
        mark, table = self.mark, self._table
        failing = "failing" if mark.failing_since is not None else "open"
        since = mark.failing_since
        return HookView(
            name=self.name,
            url=parse_target(table.url, field="url").shown,
            kinds=list(table.kinds),
            repositories=list(table.repositories),
            state=mark.closed or failing,  # type: ignore[arg-type]
            after=mark.after,
            behind=max(0, self._events.last - mark.after),
            since=None if since is None else timestamp(since),
            detail=mark.detail or None,
        )

    async def run(self) -> None:
        """Tell what comes, until the runtime ends."""
        try:
            while True:
                if self.mark.closed is not None:
                    await self._opened.wait()
                query = EventQuery(after=self.mark.after, kind=self._table.wanted)
                page = await self._events.page(query, wait=True)
                if not page.events:
                    return
                for event in page.events:
                    if self._is_for(event) and not await self._deliver(event):
                        break
                    self._is_told(event.seq)
                else:
                    self._is_told(page.next.after or 0)
                self._save()
        finally:
            with trio.CancelScope(shield=True):
                await self._mailer.close()

    def _is_for(self, event: EventView) -> bool:
        repositories = self._table.repositories
        return not repositories or event.repo in repositories

    async def _deliver(self, event: EventView) -> bool:
        """Tell one event until it is taken; False if nothing is to be told any more."""
        what = Payload(event.kind, event.at, event)
        # In a store that was restored a number may be another event's.
        moment = "".join(filter(str.isdigit, event.at))
        message = f"{self._instance}.{event.seq}.{moment}"
        tries = 0
        while True:
            asked = None
            try:
                answer = await self._tell(message, what)
            except NotDelivered as error:
                problem: str | None = str(error)
            else:
                problem, asked = refusal(answer), answer.retry_after
                if is_gone(answer):
                    self._close("gone", "it answered 410")
                    return False
            if problem is None:
                if self.mark.failing_since is not None:
                    self._change(failing_since=None, detail="")
                return True
            tries += 1
            if not self._fails(problem):
                return False
            chance = self._mailer.chance.random()
            await trio.sleep(delay(tries, asked, chance))

    async def _tell(self, message: str, what: Payload) -> Answered:
        table = self._table
        return await self._mailer.tell(
            table.url, table.secret, table.seconds, message, what
        )

    def _fails(self, problem: str) -> bool:
        """Keep that in mind; False once it has failed for too long."""
        now = self._clock.now()
        since = self.mark.failing_since
        since = now if since is None else since
        self._change(failing_since=since, detail=problem[:MAX_DETAIL])
        if now - since < self._table.patience:
            return True
        self._close("suspended", problem[:MAX_DETAIL])
        return False

    async def test(self) -> Answered:
        """Tell it something that is no event.

        Raises:
            Refused: it was not taken, and why.
        """
        now = self._clock.wall()
        what = Payload("webhook.test", timestamp(now), {"webhook": self.name})
        try:
            answer = await self._tell(f"{self._instance}.test.{now:.3f}", what)
        except NotDelivered as error:
            raise Refused(f"the webhook {self.name} was not told: {error}") from None
        if (problem := refusal(answer)) is not None:
            raise Refused(f"the webhook {self.name} was not told: {problem}")
        return answer

    async def open(self) -> None:
        """Tell it again what comes, and what came since it was closed."""
        if self.mark.closed is None:
            raise Refused(f"the webhook {self.name} is not closed")
        now = self._clock.now()
        event = Event("webhook_opened", now, data={"webhook": self.name})
        mark = HookMark(self.name, self.mark.after, self.mark.target)
        await self._store.save([HookChanged(mark, event)]).wait()
        self.mark = mark
        self._opened.set()

    def _close(self, how: Closing, why: str) -> None:
        now = self._clock.now()
        data: dict[str, object] = {"webhook": self.name, "how": how, "reason": why}
        event = Event("webhook_closed", now, data=data)
        since = self.mark.failing_since
        self.mark = structs.replace(
            self.mark,
            closed=how,
            detail=why,
            failing_since=now if since is None else since,
        )
        self._opened = trio.Event()
        log.warning("the webhook %s is told nothing more: %s", self.name, why)
        self._store.save([HookChanged(self.mark, event)])

    def _change(self, *, failing_since: float | None, detail: str) -> None:
        mark = structs.replace(self.mark, failing_since=failing_since, detail=detail)
        began = (mark.failing_since is None) != (self.mark.failing_since is None)
        self.mark = mark
        if began:
            self._store.save([HookChanged(mark)], lazy=True)

    def _is_told(self, seq: int) -> None:
        if seq > self.mark.after:
            self.mark = structs.replace(self.mark, after=seq)
            self._unsaved += 1
        if self._unsaved >= SAVED_AFTER:
            self._save()

    def _save(self) -> None:
        if self._unsaved:
            self._unsaved = 0
            self._store.save([HookChanged(self.mark)], lazy=True)


class Webhooks:
    """Those of one runtime."""

    def __init__(self, hooks: Sequence[Hook]) -> None:
        self.hooks = {hook.name: hook for hook in hooks}

    def named(self, name: str) -> Hook:
        """Raises:
        NotFound: there is none.
        """
        if name not in self.hooks:
            known = ", ".join(self.hooks) or "none"
            raise NotFound(f"there is no webhook {name!r}; there are: {known}")
        return self.hooks[name]

    @property
    def trouble(self) -> list[str]:
        return [why for hook in self.hooks.values() if (why := hook.trouble)]

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            for hook in self.hooks.values():
                nursery.start_soon(hook.run)


def open_webhooks(
    tables: Sequence[WebhookTable],
    make_mailer: Callable[[], Mailer],
    events: Events,
    store: Store,
    clock: Clock,
    instance: str,
) -> Webhooks:
    """One hook for each table, each with connections of its own."""
    hook = partial(Hook, events=events, store=store, clock=clock, instance=instance)
    return Webhooks([hook(table, make_mailer()) for table in tables])
