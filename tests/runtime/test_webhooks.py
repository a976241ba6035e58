"""When a webhook is told what, on a clock of its own and a store in memory."""

from __future__ import annotations

import math
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from msgspec import json, structs

from forge_actors.domain.errors import Refused
from forge_actors.domain.events import EventPage, EventQuery, EventView
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.webhooks import Answered, HookMark, NotDelivered, fingerprint
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.runtime.webhook_settings import WebhookTable
from forge_actors.runtime.webhooks import Hook, Mailer
from forge_actors.testing.clock import START, FakeClock
from forge_actors.testing.store import MemoryStore
from forge_actors.testing.webhooks import FakeSender

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from typing import Any

pytestmark = pytest.mark.mock_clock

URL = "https://a.example/hidden"
TABLE = WebhookTable("ci", URL, "HOOK")


class Certain:
    """No chance: each wait is as long as it can be."""

    def random(self) -> float:
        return 1.0


class Log:
    """Events as the test adds them; the longest wait is noted."""

    def __init__(self) -> None:
        self.events: list[EventView] = []
        self._added = trio.Event()
        self.reads = 0

    @property
    def last(self) -> int:
        return len(self.events)

    def add(self, kind: str = "job_queued", repo: str = "app") -> None:
        number = len(self.events) + 1
        at = timestamp(START + number)
        self.events.append(EventView(number, at, kind, repo, None, {}))
        self._added.set()
        self._added = trio.Event()

    async def page(self, query: EventQuery, *, wait: bool) -> EventPage:
        assert wait
        while True:
            self.reads += 1
            after = query.after or 0
            new = [each for each in self.events[after:] if self._is_asked(query, each)]
            if new:
                return EventPage(new, structs.replace(query, after=new[-1].seq))
            await self._added.wait()

    @staticmethod
    def _is_asked(query: EventQuery, event: EventView) -> bool:
        return not query.kind or event.kind in query.kind


class Ground:
    """A hook that runs, the sender that it has, and when it was told what."""

    def __init__(self, home: Path, store: MemoryStore, sender: FakeSender) -> None:
        self.log = Log()
        self.store = store
        self.sender = sender
        self.secrets = SecretFolder(home)
        self.secrets.write("HOOK", b"key")
        self.clock = FakeClock()
        self.mailer = Mailer(sender, self.secrets, self.clock, Certain())  # type: ignore[arg-type]

    def hook(self, table: WebhookTable = TABLE) -> Hook:
        return Hook(table, self.mailer, self.log, self.store, self.clock, "home")

    def told(self) -> list[int]:
        """The numbers of the events, as they came."""
        bodies = [json.decode(each.body) for each in self.sender.sent]
        return [body["data"]["seq"] for body in bodies]


@asynccontextmanager
async def ground(
    home: Path, *answers: int | Answered | NotDelivered
) -> AsyncIterator[Ground]:
    async with MemoryStore().open() as store:
        yield Ground(home, store, FakeSender(answers or (200,)))


@asynccontextmanager
async def telling(hook: Hook) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(hook.run)
        yield
        nursery.cancel_scope.cancel()


async def test_a_new_one_begins_with_what_comes_next(tmp_path: Path) -> None:
    async with ground(tmp_path) as made:
        made.log.add()
        async with telling(made.hook()):
            await trio.testing.wait_all_tasks_blocked()
            made.log.add()
            await trio.testing.wait_all_tasks_blocked()
            assert made.told() == [2]
            made.log.add()
            made.log.add()
            await trio.testing.wait_all_tasks_blocked()
        assert made.told() == [2, 3, 4]
        assert made.store.webhooks() == [HookMark("ci", 4, fingerprint(URL))]


async def test_without_news_it_does_nothing_at_all(tmp_path: Path) -> None:
    async with ground(tmp_path) as made, telling(made.hook()):
        made.log.add()
        await trio.testing.wait_all_tasks_blocked()
        before = (made.log.reads, made.store.commits)
        await trio.sleep(86_400)
        assert (made.log.reads, made.store.commits) in (
            before,
            (before[0], before[1] + 1),  # how far it is was saved lazily
        )


async def test_what_fails_is_told_again_later_each_time_and_holds_up_the_next(
    tmp_path: Path,
) -> None:
    gone = NotDelivered("took longer than 10 s")
    asked = Answered(429, 60.0)
    async with ground(tmp_path, 500, gone, 302, asked, 200) as made:
        times = []
        real = made.sender.send

        async def send(delivery: Any) -> Answered:
            times.append(trio.current_time() - began)
            return await real(delivery)

        made.sender.send = send  # type: ignore[method-assign]
        hook = made.hook()
        began = trio.current_time()
        async with telling(hook):
            made.log.add()
            made.log.add()
            await trio.sleep(2)
            assert hook.trouble is not None
            assert "took longer than 10 s" in hook.trouble
            assert hook.view().state == "failing"
            await trio.sleep(100)
        assert made.told() == [1, 1, 1, 1, 1, 2]
        assert all(map(math.isclose, times, [0, 1, 3, 7, 67, 67]))
        assert len({each.headers["webhook-id"] for each in made.sender.sent[:5]}) == 1
        assert (hook.trouble, hook.view().state) == (None, "open")


async def test_one_that_is_slow_or_fails_holds_up_no_other(tmp_path: Path) -> None:
    async with ground(tmp_path, 500) as made:
        other = FakeSender()
        mailer = Mailer(other, made.secrets, made.clock, Certain())  # type: ignore[arg-type]
        table = structs.replace(TABLE, name="other")
        second = Hook(table, mailer, made.log, made.store, made.clock, "home")
        async with telling(made.hook()), telling(second):
            made.log.add()
            made.log.add()
            await trio.testing.wait_all_tasks_blocked()
            assert (len(made.sender.sent), len(other.sent)) == (1, 2)


async def test_it_is_given_up_and_goes_on_where_it_was(tmp_path: Path) -> None:
    table = structs.replace(TABLE, give_up="10m")
    async with ground(tmp_path, 500) as made:
        hook = made.hook(table)
        async with telling(hook):
            made.log.add()
            made.log.add()
            await trio.sleep(3600)
            tries = len(made.sender.sent)
            assert hook.mark.closed == "suspended"
            await trio.sleep(86_400)
            assert len(made.sender.sent) == tries
        assert set(made.told()) == {1}
        [event] = [e for e in made.store.durable.events if e.kind == "webhook_closed"]
        assert event.data == {
            "webhook": "ci",
            "how": "suspended",
            "reason": "it answered 500",
        }
        # Also after a restart; another URL, or a person, opens it.
        made.sender = FakeSender()
        made.mailer = Mailer(made.sender, made.secrets, made.clock, Certain())  # type: ignore[arg-type]
        again = made.hook(table)
        async with telling(again):
            await trio.sleep(60)
            assert made.sender.sent == []
            await again.open()
            await trio.testing.wait_all_tasks_blocked()
            assert made.told() == [1, 2]
            with pytest.raises(Refused, match="is not closed"):
                await again.open()
        elsewhere = structs.replace(table, url="https://b.example/")
        assert made.hook(elsewhere).mark == HookMark(
            "ci", 2, fingerprint("https://b.example/")
        )


async def test_410_closes_it_at_once(tmp_path: Path) -> None:
    async with ground(tmp_path, 410) as made:
        hook = made.hook()
        async with telling(hook):
            made.log.add()
            made.log.add()
            await trio.sleep(86_400)
        assert (made.told(), hook.mark.closed) == ([1], "gone")
        assert hook.mark.after == 0, "it was not taken"


async def test_only_events_of_its_kinds_and_repositories_are_told(
    tmp_path: Path,
) -> None:
    kinds, repositories = ("job_fail*", "paused"), ("app",)
    table = structs.replace(TABLE, kinds=kinds, repositories=repositories)
    async with ground(tmp_path) as made, telling(made.hook(table)):
        for kind in ("job_failed", "job_queued", "paused"):
            for repo in ("app", "other"):
                made.log.add(kind, repo)
        await trio.testing.wait_all_tasks_blocked()
        assert made.told() == [1, 5]


async def test_a_crash_tells_again_what_was_not_saved_and_leaves_nothing_out(
    tmp_path: Path,
) -> None:
    async with ground(tmp_path) as made:
        made.hook()
        await made.store.save([]).wait()
        async with telling(made.hook()):
            for _ in range(70):
                made.log.add()
            await trio.testing.wait_all_tasks_blocked()
        assert made.told() == list(range(1, 71))
        made.store.crash()
        async with telling(made.hook()):
            await trio.testing.wait_all_tasks_blocked()
        again = made.told()[70:]
        assert again == list(range(71 - len(again), 71))


async def test_without_its_secret_it_is_told_nothing(tmp_path: Path) -> None:
    async with ground(tmp_path) as made:
        hook = made.hook()
        made.secrets.remove("HOOK")
        async with telling(hook):
            made.log.add()
            await trio.sleep(1)
            assert made.sender.sent == []
            assert hook.trouble is not None
            assert "there is no secret 'HOOK'" in hook.trouble
            made.secrets.write("HOOK", b"another")
            await trio.sleep(60)
        assert made.told() == [1]


async def test_a_store_that_was_restored_knows_less_than_it_was_told(
    tmp_path: Path,
) -> None:
    async with ground(tmp_path) as made:
        for _ in range(5):
            made.log.add()
        hook = made.hook()
        await made.store.save([]).wait()
        del made.log.events[3:]
        hook = made.hook()
        assert hook.mark.after == 3
        async with telling(hook):
            made.log.add()
            await trio.testing.wait_all_tasks_blocked()
        assert made.told() == [4]
