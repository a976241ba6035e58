"""The watch of issues: asks GitHub what changed, each schedule at its interval.

It is the one part that asks at intervals, as GitHub calls nobody. What it asks is
conditional, so that no change costs nothing there. Where to go on from is read from the
schedule each time, which saves it together with the windows: what was not saved is
found again, and a window that comes twice is the same window. Four questions are under
way at once, each within its time, and no other schedule waits for any of them.

Its notices are few: one alarm, and one end of each question.
"""

from __future__ import annotations

import heapq
import logging
import math
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors.alarm import Alarm
from forge_actors.actors.issue_watches_messages import (
    Asked,
    Due,
    Follow,
    Leave,
    Message,
)
from forge_actors.actors.issue_watches_messages import Context as Context
from forge_actors.actors.mailbox import Inbox, Mailbox, open_mailbox, serving
from forge_actors.actors.schedules_messages import Signalled
from forge_actors.domain.causes import Issues
from forge_actors.domain.errors import ActorStopped, ForgeError
from forge_actors.domain.github.issues import PARALLEL, ChangedQuery, GitHubFailed
from forge_actors.domain.github.watching import (
    IssuesSeen,
    baseline,
    behind,
    first_query,
    news,
)
from forge_actors.domain.schedules import MAX_CATCH_UP
from forge_actors.domain.sightings import read, written
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.triggers import On

if TYPE_CHECKING:
    from forge_actors.domain.github.issues import GitHub
    from forge_actors.domain.schedules import Schedule
    from forge_actors.domain.triggers import Window

log = logging.getLogger(__name__)

#: Seconds for all that one schedule asks at a time, and of the longest wait.
ASK_SECONDS, LONGEST = 120.0, 3600.0
#: Questions that one schedule asks at a time.
MAX_QUESTIONS = 10


@trio.lowlevel.enable_ki_protection
async def run(
    context: Context, *, task_status: trio.TaskStatus[Mailbox[Message]]
) -> None:
    """Ask until cancelled."""
    mailbox: Mailbox[Message]
    inbox: Inbox[Message]
    mailbox, inbox = open_mailbox("issues")
    async with trio.open_nursery() as children:
        actor = _Watches(context, mailbox, children)
        with serving(inbox):
            task_status.started(mailbox)
            while True:
                actor.handle(await inbox.receive())
                actor.look()


class _Watched:
    """One schedule that waits for issues."""

    def __init__(self, schedule: Schedule, cause: Issues, turn: int) -> None:
        self.id = schedule.id
        self.name = schedule.name
        self.begun = schedule.progress.begun
        self.cause = cause
        #: Its own for ever: what was asked before it was changed does not count.
        self.turn = turn
        self.failures = 0
        self.mark: tuple[str, str] | None = None


class _Watches:
    """The state of the actor's task."""

    def __init__(
        self, context: Context, mailbox: Mailbox[Message], nursery: trio.Nursery
    ) -> None:
        self._context = context
        self._mailbox = mailbox
        self._nursery = nursery
        self._watched: dict[str, _Watched] = {}
        #: By moment; those that were left stay in it until then.
        self._heap: list[tuple[float, int, str]] = []
        self._turns = 0
        self._asking = 0
        self._alarm = Alarm(lambda: mailbox.tell(Due()), math.inf)
        nursery.start_soon(self._alarm.run)

    def handle(self, message: Message) -> None:
        match message:
            case Follow(schedule):
                trigger = schedule.definition.trigger
                self._watched.pop(schedule.id, None)
                if isinstance(trigger, On) and isinstance(trigger.cause, Issues):
                    self._turns += 1
                    one = _Watched(schedule, trigger.cause, self._turns)
                    self._watched[one.id] = one
                    self._again(one, 0.0)
            case Leave(schedule):
                self._watched.pop(schedule, None)
            case Asked():
                self._asking -= 1
                known = self._watched.get(message.schedule)
                if known is not None and known.turn == message.turn:
                    known.failures, known.mark = message.failures, message.mark
                    self._again(known, message.wait)
            case Due():
                pass

    def look(self) -> None:
        """Ask for those whose time has come, as many at once as may be."""
        now = trio.current_time()
        while self._heap and self._asking < PARALLEL:
            moment, turn, key = self._heap[0]
            one = self._watched.get(key)
            if one is not None and one.turn == turn:
                if moment > now:
                    break
                self._asking += 1
                self._nursery.start_soon(self._ask, one)
            heapq.heappop(self._heap)
        free = self._heap and self._asking < PARALLEL
        self._alarm.set(self._heap[0][0] if free else math.inf)

    def _again(self, one: _Watched, wait: float) -> None:
        moment = trio.current_time() + wait
        heapq.heappush(self._heap, (moment, one.turn, one.id))

    # -- one question ----------------------------------------------------------------

    async def _ask(self, one: _Watched) -> None:
        asked = Asked(one.id, one.turn, one.cause.every, mark=one.mark)
        try:
            with trio.fail_after(ASK_SECONDS):
                asked = await self._asked(one, asked)
        except trio.TooSlowError:
            asked = await self._failed(one, f"took longer than {ASK_SECONDS:g} s")
        except ActorStopped:
            pass  # those whom it would be told begin anew, and this with them
        except GitHubFailed as error:
            asked = await self._failed(one, str(error), error.wait)
        except ForgeError as error:
            asked = await self._failed(one, str(error))
        except Exception as error:
            log.exception("issues cannot be asked for schedule %s", one.name)
            why = f"it failed: {type(error).__name__}: {error}"
            asked = await self._failed(one, why)
        self._mailbox.tell(asked)

    async def _asked(self, one: _Watched, asked: Asked) -> Asked:
        """Ask, and tell the schedule what is new."""
        schedule = await self._context.schedule(one.id)
        if schedule is None:
            return asked
        waiting = sum(not entry.asked for entry in schedule.progress.pending)
        room = min(self._context.at_once(), MAX_CATCH_UP - waiting)
        if room <= 0:
            return asked
        seen = read(schedule.progress.seen, IssuesSeen)
        looked = await look(
            self._context.github(),
            *(one.cause, seen, one.mark),
            *(self._context.clock.wall(), room),
        )
        if looked.seen != seen or schedule.progress.blind:
            lost = f"not all that changed at {looked.lost} is seen"
            told = Signalled(
                *(one.id, one.begun, written(looked.seen), tuple(looked.windows)),
                blind=lost if looked.lost else "",
            )
            self._context.tell(told)
        wait = max(one.cause.every, looked.pace)
        return structs.replace(asked, wait=wait, mark=looked.mark)

    async def _failed(
        self, one: _Watched, why: str, told: float | None = None
    ) -> Asked:
        """Say why nothing is seen, and when it is tried again."""
        failures = one.failures + 1
        wait = one.cause.every * 2.0 ** min(failures - 1, 16)
        wait = max(one.cause.every, min(wait, LONGEST))
        if told is not None:
            wait = max(one.cause.every, told)
        again = timestamp(self._context.clock.wall() + wait)
        try:
            schedule = await self._context.schedule(one.id)
            if schedule is not None:
                seen, blind = schedule.progress.seen, f"{why}; asked again at {again}"
                told_blind = Signalled(one.id, one.begun, seen, blind=blind)
                self._context.tell(told_blind)
        except ForgeError as error:
            log.info("schedule %s is not told that %s: %s", one.name, why, error)
        return Asked(one.id, one.turn, wait, failures, one.mark)


class Looked:
    """What GitHub said to one schedule."""

    def __init__(self, seen: IssuesSeen) -> None:
        self.seen = seen
        self.windows: list[Window] = []
        #: Where it was asked from, and what marked the answer: nothing is new while
        #: both are the same.
        self.mark: tuple[str, str] | None = None
        self.pace = 0.0
        #: The moment at which more issues changed than can be told.
        self.lost = ""


async def look(
    github: GitHub,
    cause: Issues,
    seen: IssuesSeen | None,
    mark: tuple[str, str] | None,
    wall: float,
    most: int,
) -> Looked:
    """What is new among the issues that a cause means; at most so many windows.

    Raises:
        GitHubFailed: GitHub does not tell.
    """
    place = cause.place
    assert place is not None, "it was named when the schedule was made"
    if seen is None:
        page = await github.changed(place, first_query(cause.labels))
        return Looked(baseline(page.issues))
    looked = Looked(seen)
    etag = mark[1] if mark is not None and mark[0] == seen.floor else None
    query = ChangedQuery(seen.floor, cause.labels, etag=etag)
    for _ in range(MAX_QUESTIONS):
        page = await github.changed(place, query)
        looked.pace = max(looked.pace, page.pace)
        if page.same:
            looked.mark = mark
            return looked
        found = news(looked.seen, page.issues, wall, most - len(looked.windows))
        looked.seen = found.seen
        looked.windows += found.windows
        if found.more:
            return looked
        if page.following is None:
            # Behind a full page what is new would not change it.
            whole = query.link is None and len(page.issues) < query.count
            if whole and page.etag and query.since == seen.floor:
                looked.mark = seen.floor, page.etag
            return looked
        last = page.issues[-1].updated if page.issues else ""
        if last > (query.since or ""):
            # Not the next page: what changes meanwhile would push others past it.
            query = ChangedQuery(last, cause.labels)
        else:
            query = structs.replace(query, etag=None, link=page.following)
    # A crowd. Next time it goes on behind it, where nobody is asked for again.
    looked.seen = behind(looked.seen, stuck=looked.seen == seen)
    looked.lost = looked.seen.last if looked.seen.floor > looked.seen.last else ""
    return looked
