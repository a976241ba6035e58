"""The feed: keeps a board as the service says, by one request that is held open.

Nothing is asked twice without a reason: events say what changed, and then what is on
the screen of it is asked for anew. Many events together cost one look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from forge_actors.cli.dashboard.board import MAX_FINISHED, MAX_WAITING
from forge_actors.client.aio import Client
from forge_actors.domain.errors import ForgeError, NotFound
from forge_actors.domain.events import GATHER_SECONDS
from forge_actors.domain.jobs import RESERVED, TERMINAL, WAITING
from forge_actors.domain.requests import JobQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from forge_actors.cli.dashboard.board import Board
    from forge_actors.domain.jobs import JobView, State

#: By what something was approved, as it is saved.
HOW = "watch"
#: Jobs in one answer.
PAGE = 500
#: Seconds between two looks while events come, and two tries to reach a service.
LOOK_SECONDS, AGAIN_SECONDS = 0.2, 2.0
#: Jobs on the screen that are asked for anew in one look.
MAX_LOOKED_AT = 60


class Feed:
    """Follows the service of one home.

    `shown` says which jobs are on the screen, `changed` is called after each change of
    the board, `lost` with a sentence when the service is gone and None when it is back.
    """

    def __init__(
        self,
        home: str,
        board: Board,
        *,
        shown: Callable[[], Collection[str]],
        changed: Callable[[], None],
        lost: Callable[[str | None], None],
    ) -> None:
        self.client = Client(home)
        self._board = board
        self._shown = shown
        self._changed = changed
        self._lost = lost
        self._woken = anyio.Event()

    def wake(self) -> None:
        """Look anew at what is on the screen: it is another part, or somebody acted."""
        self._woken.set()

    async def run(self) -> None:
        """Follow the service, and a later one of the home; for ever."""
        while True:
            try:
                await self._follow()
                self._lost("the service has ended; waiting for the next one")
            except* ForgeError as errors:
                self._lost(str(_first(errors)))
            await anyio.sleep(AGAIN_SECONDS)

    async def _follow(self) -> None:
        """Until the service ends."""
        # The request for events comes first, so that nothing falls between the two.
        async with self.client.events(follow=True, limit=PAGE) as events:
            await self._load()
            self._lost(None)
            self._changed()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._look)
                async for event in events:
                    self._board.apply(event)
                    self.wake()
                tasks.cancel_scope.cancel()

    async def _look(self) -> None:
        while True:
            await self._woken.wait()
            self._woken = anyio.Event()
            # What comes right behind it is told with it.
            await anyio.sleep(GATHER_SECONDS)
            await self._look_once()
            self._changed()
            await anyio.sleep(LOOK_SECONDS)

    async def _load(self) -> None:
        board, client = self._board, self.client
        board.begin(await self._pages(sorted(RESERVED), MAX_WAITING))
        board.add(await self._pages(sorted(WAITING), MAX_WAITING))
        board.add(await self._pages(sorted(TERMINAL), MAX_FINISHED))
        board.status = await client.status()
        board.set_inbox(await client.inbox())
        missing = board.attention - board.jobs.keys()
        for job in sorted(missing):
            await self._one(job)

    async def _pages(self, states: Sequence[State], most: int) -> list[JobView]:
        """The newest jobs in these states."""
        found: list[JobView] = []
        while len(found) < most:
            size = min(PAGE, most - len(found))
            before = found[-1].id if found else None
            query = JobQuery(state=list(states), limit=size, before=before)
            page = await self.client.jobs(query)
            found += page
            if len(page) < size:
                break
        return found

    async def _look_once(self) -> None:
        board = self._board
        if board.news:
            board.news = False
            await self._news()
        on_screen = [job for job in self._shown() if job in board.stale]
        for job in on_screen[:MAX_LOOKED_AT]:
            await self._one(job)
        if board.status_stale:
            board.status_stale = False
            board.status = await self.client.status()
        if board.inbox_stale:
            board.set_inbox(await self.client.inbox())

    async def _news(self) -> None:
        """The jobs that are newer than all that are known."""
        newest = self._board.newest() or ""
        before: str | None = None
        for _ in range(MAX_WAITING // PAGE):
            page = await self.client.jobs(JobQuery(limit=PAGE, before=before))
            self._board.add(job for job in page if job.id > newest)
            if len(page) < PAGE or page[-1].id <= newest:
                return
            before = page[-1].id

    async def _one(self, job: str) -> None:
        try:
            self._board.add([await self.client.job(job)])
        except NotFound:
            self._board.gone(job)

    # -- what somebody wants to know or to do ------------------------------------------

    async def why(self, job: str) -> str | None:
        """Why a job is where it is, in a sentence."""
        try:
            return (await self.client.why(job)).sentence
        except ForgeError:
            return None

    async def act(self, what: str, job: JobView) -> str:
        """Do something with a job; what to say of it.

        Raises:
            ForgeError: it cannot be done.
        """
        client = self.client
        if what == "cancel":
            await client.cancel(job.id)
        elif what == "retry":
            [new] = await client.retry(job.id)
            return f"it runs again as {new.id}"
        elif what == "approve":
            await client.approve(job.id, how=HOW)
        elif what == "deny":
            await client.deny(job.id)
        elif what == "pause":
            await client.pause_job(job.id)
        else:
            await client.resume_job(job.id)
        return DONE[what]

    async def pause_all(self, *, on: bool) -> str:
        """Start nothing more, or go on."""
        if on:
            await self.client.pause("all")
            return "nothing more starts until it is resumed"
        await self.client.resume("all")
        return "jobs start again"


def _first(errors: BaseExceptionGroup[ForgeError]) -> BaseException:
    """One of them, which tells what is wrong; the others follow from it."""
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


#: What is said once something was done.
DONE = {
    "cancel": "it is asked to stop",
    "approve": "it goes on",
    "deny": "it is denied",
    "pause": "it is paused",
    "resume": "it goes on",
}
