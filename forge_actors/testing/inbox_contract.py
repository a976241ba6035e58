"""What every store keeps of what was done about the items of the inbox, as checks."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from forge_actors.domain.changes import ItemMarked
from forge_actors.domain.events import Event
from forge_actors.domain.inbox import Mark

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.ports import Store

    Open = Callable[[], AbstractAsyncContextManager[Store]]
    Check = Callable[[Open], Awaitable[None]]


async def check_what_was_done_about_an_item_stays_done(open_: Open) -> None:
    told = Event("inbox_dismissed", 20.0, data={"item": "job:a"})
    async with open_() as store:
        assert store.inbox_marks() == []
        store.save([ItemMarked(Mark("job:a", notified_at=10.0))])
        assert store.inbox_marks() == [Mark("job:a", None, 10.0)]
        seen = Mark("job:a", dismissed_at=20.0)
        await store.save([ItemMarked(seen, told)]).wait()
    async with open_() as store:
        assert store.inbox_marks() == [Mark("job:a", 20.0, 10.0)]
        await store.save([ItemMarked(Mark("job:b", notified_at=30.0))]).wait()
    async with open_() as store:
        marks = {mark.item: mark for mark in store.inbox_marks()}
        assert marks["job:a"] == Mark("job:a", 20.0, 10.0)
        assert marks["job:b"] == Mark("job:b", None, 30.0)


CHECKS: tuple[Check, ...] = (check_what_was_done_about_an_item_stays_done,)
