"""The controllers of one runtime: the actor that wakes them, kept alive.

It is started again when it fails, from what was saved. When it fails over and over it
is left alone, jobs go on, and `status` says so.
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING, TypeVar

import trio
from msgspec import MsgspecError, json

from forge_actors.actors import controllers
from forge_actors.actors.controllers_messages import Due, Rouse
from forge_actors.actors.keeper import Keeper
from forge_actors.domain.continuation import NotWoken
from forge_actors.domain.errors import MailboxClosed, StoreFailed, Unavailable
from forge_actors.domain.policies import held_schedules
from forge_actors.domain.triggers import On
from forge_actors.runtime.continuation_words import asked
from forge_actors.runtime.controller_hosts import Hosts
from forge_actors.runtime.process_host import ProcessHost
from forge_actors.runtime.views import receipt_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors.controllers_messages import Message
    from forge_actors.actors.mailbox import Reply
    from forge_actors.domain.controllers import By, Controller, Wake
    from forge_actors.domain.ports import Clock, WallTimer
    from forge_actors.domain.requests import JobRequest
    from forge_actors.domain.schedules import Schedule
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.control_following import FollowingControl
    from forge_actors.runtime.looking import Looking
    from forge_actors.runtime.registry import Registry

log = logging.getLogger(__name__)

A = TypeVar("A")

#: Seconds in which a look at the checkout after the end of a job is waited for.
SETTLE_SECONDS = 15.0


class RunningControllers:
    """`run` is its task."""

    def __init__(
        self,
        store: SqliteStore,
        clock: Clock,
        registry: Registry,
        looking: Looking,
        control: Callable[[], FollowingControl],
        freed: Callable[[], object],
        timer: WallTimer,
    ) -> None:
        self._store = store
        self._looking = looking
        #: Finds a host by its name.
        self.host = Hosts(ProcessHost(store, control))
        self._context = controllers.Context(
            store=store,
            clock=clock,
            timer=timer,
            host=self.host,
            seen=self.seen,
            said=self._said,
            asked=asked,
            freed=freed,
            closed=lambda: held_schedules(store.policy),
            known=lambda repo: registry.get(repo) is not None,
        )
        #: Set at each look, and another one then.
        self._looked = trio.Event()
        looking.looked.append(self._say_looked)
        store.when_policy_changes(lambda: self.tell(Due()))
        self._keeper: Keeper[Message] = Keeper(
            "the controllers",
            lambda *, task_status: controllers.run(
                self._context, task_status=task_status
            ),
            ends_at=(StoreFailed,),  # another runtime has the home, and this one ends
            answers_late=True,
        )

    async def run(self) -> None:
        """Wake controllers; return after `stop`, or when that fails for good."""
        await self._keeper.run()

    def stop(self) -> None:
        """Wake nothing more; jobs that run are followed by the next runtime."""
        self._keeper.kill()

    async def ask(self, make: Callable[[Reply[A]], Message]) -> A:
        """What the actor answers.

        Raises:
            Unavailable: it does not run.
        """
        try:
            return await self._keeper.ask(make)
        except MailboxClosed:
            why = self._keeper.given_up or "the service ends"
            raise Unavailable(f"controllers are not woken any more: {why}") from None

    def tell(self, message: Message) -> None:
        self._keeper.tell(message)

    async def rouse(
        self, name: str, wake: str, by: By, origin: str, *, news: bool = False
    ) -> Wake:
        """Have a controller go on, once for each occurrence.

        Raises:
            NotFound: there is none. NotNow: it cannot be woken at the moment.
        """
        return await self.ask(
            lambda reply: Rouse(name, wake, by, origin, reply, news=news)
        )

    async def wake(self, schedule: Schedule, request: JobRequest) -> str | None:
        """The same for a window of a schedule; the job that has begun.

        Raises:
            NotFound, NotNow: as above. NotWoken: this window wakes nothing.
        """
        assert schedule.definition.wake is not None, "it wakes one"
        assert request.request_id is not None, "it is of a window"
        news = isinstance(schedule.definition.trigger, On)
        told = await self.rouse(
            *(schedule.definition.wake, request.request_id, "schedule"),
            request.origin,
            news=news,
        )
        if told.state != "dispatched":
            failed = told.state in ("rejected", "outcome_unknown")
            raise NotWoken(told.reason, failed=failed)
        return told.job

    @property
    def trouble(self) -> list[str]:
        """What `status` says of it, if anything is wrong."""
        if self._keeper.given_up is None:
            return []
        return [f"controllers are not woken any more: {self._keeper.given_up}"]

    # -- what is seen ----------------------------------------------------------------

    def seen(self, controller: Controller) -> str:
        """A digest of the checkout, and of what ended there besides its own jobs."""
        look = self._store.look(controller.repo)
        status = b"" if look is None else json.encode(look.status)
        first = "" if controller.round is None else controller.round.job
        rows = self._store.read(
            "last_of_others", controller.repo, controller.id, first or controller.job
        )
        return hashlib.sha256(status + json.encode(rows)).hexdigest()

    def _say_looked(self, _: str) -> None:
        before, self._looked = self._looked, trio.Event()
        before.set()

    async def _said(self, job: str) -> str:
        """The last words of the agent of a job that has ended, once the checkout was
        looked at behind it."""
        rows = self._store.read("view_job", job)
        if not rows:
            return ""
        await self._settle(self._repo_of(job))
        try:
            receipt = receipt_of(rows[0])
        except (MsgspecError, RecursionError):
            return ""
        told = None if receipt is None else receipt.agent
        return "" if told is None else told.text

    def _repo_of(self, job: str) -> str:
        rows = self._store.read_pending("job_attempt", job)
        return str(rows[0][3]) if rows else ""

    async def _settle(self, repo: str) -> None:
        if not self._looking.enabled:
            return
        with trio.move_on_after(SETTLE_SECONDS):
            while True:
                looked, look = self._looked, self._store.look(repo)
                if look is None or (look.dirty is None and not look.busy):
                    return
                await looked.wait()
