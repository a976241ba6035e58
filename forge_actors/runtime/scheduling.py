"""The schedules of one runtime: the actor that decides about them, kept alive.

It is started again when it fails, from what was saved. When it fails over and over it
is left alone, jobs go on, and `status` says so.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import trio

from forge_actors.actors import lookout, lookout_messages, schedules
from forge_actors.actors.keeper import Keeper
from forge_actors.actors.schedules_messages import HeldNoMore, Stirred
from forge_actors.domain.errors import MailboxClosed, StoreFailed, Unavailable
from forge_actors.domain.policies import held_schedules
from forge_actors.edges.git.commits import GitCommits
from forge_actors.runtime.baselines import Baseline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from forge_actors.actors.mailbox import Mailbox, Reply
    from forge_actors.actors.schedules_messages import Message
    from forge_actors.domain.ports import Clock, WallTimer
    from forge_actors.domain.requests import Accepted, JobRequest
    from forge_actors.domain.schedules import Hindrance, Schedule
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.issue_watching import IssueWatching
    from forge_actors.runtime.looking import Looking
    from forge_actors.runtime.registry import Registry

log = logging.getLogger(__name__)

A = TypeVar("A")


class Scheduling:
    """`run` is its task."""

    def __init__(
        self,
        store: SqliteStore,
        clock: Clock,
        submit: Callable[[Sequence[JobRequest]], Awaitable[list[Accepted]]],
        cancel: Callable[[str], Awaitable[object]],
        registry: Registry,
        looking: Looking,
        issues: IssueWatching,
        wake: Callable[[Schedule, JobRequest], Awaitable[str | None]],
        timer: WallTimer,
    ) -> None:
        commits = GitCommits()
        self._lookout: Mailbox[lookout_messages.Message] | None = None
        looking.looked.append(self._looked)
        #: Sees how far something is now that a schedule is to wait for.
        self.baseline = Baseline(store, registry.get, commits)

        async def submit_one(request: JobRequest) -> str:
            [accepted] = await submit([request])
            return accepted.id

        def dirty(repo: str) -> bool | None:
            look = store.look(repo)
            if look is None or look.dirty is not None or look.status is None:
                return None
            return not look.status.clean

        def hindrances(repo: str) -> dict[Hindrance, str]:
            found: dict[Hindrance, str] = {}
            if store.tally.of_repository(repo).get("waiting_for_approval"):
                found["approval"] = "a job of the repository waits for a person"
            for (job,) in store.read("release_gate", repo):
                found["release"] = f"the release gate {job} has not ended"
            return found

        self._looking = looking
        self._issues = issues
        self._context = schedules.Context(
            store=store,
            clock=clock,
            timer=timer,
            submit=submit_one,
            wake=wake,
            cancel=cancel,
            dirty=dirty,
            closed=lambda: held_schedules(store.policy),
            hindrances=hindrances,
            known=lambda repo: registry.get(repo) is not None,
            sources=(self, issues),
        )
        self._lookout_context = lookout.Context(
            store=store,
            clock=clock,
            commits=commits,
            repository=registry.get,
            watch=looking.board.wait_for,
            tell=self.tell,
        )
        store.when_policy_changes(lambda: self.tell(HeldNoMore()))
        self._mailbox: Mailbox[Message] | None = None
        #: What the actor is told while it starts: its sources see something at once.
        self._early: list[Message] = []
        self._keeper = Keeper(
            "the schedules",
            self._begin,
            ends_at=(StoreFailed,),  # another runtime has the home, and this one ends
            answers_late=True,
        )

    async def run(self) -> None:
        """Decide about schedules; return after `stop`, or when that fails for good."""
        await self._keeper.run()

    def stop(self) -> None:
        """Submit nothing more. What is due then is late for the next runtime."""
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
            raise Unavailable(f"schedules are not looked at any more: {why}") from None

    def tell(self, message: Message) -> None:
        if self._mailbox is None:
            if self._lookout is not None:
                self._early.append(message)
            return
        with suppress(MailboxClosed):  # it begins anew from what is saved
            self._mailbox.tell(message)

    # The port `Source`.

    def follow(self, schedule: Schedule) -> None:
        """See the port."""
        self._tell_lookout(lookout_messages.Follow(schedule))

    def leave(self, schedule: str) -> None:
        """See the port."""
        self._tell_lookout(lookout_messages.Leave(schedule))

    def _looked(self, repo: str) -> None:
        if repo in self._context.held:
            self.tell(Stirred(repo))
        if repo in self._looking.board.awaited:
            self._tell_lookout(lookout_messages.Looked(repo))

    def _tell_lookout(self, message: lookout_messages.Message) -> None:
        if self._lookout is not None:
            with suppress(MailboxClosed):  # it begins anew from what is saved
                self._lookout.tell(message)

    @property
    def trouble(self) -> list[str]:
        """What `status` says of it, if anything is wrong."""
        if self._keeper.given_up is None:
            return []
        return [f"schedules are not looked at any more: {self._keeper.given_up}"]

    async def _begin(self, *, task_status: trio.TaskStatus[Mailbox[Message]]) -> None:
        """The actor, and those who look out for what it waits for; if one of them
        fails, all of them begin anew."""
        try:
            async with trio.open_nursery() as nursery:
                # What schedules wait for is followed as they are loaded.
                self._lookout = await nursery.start(lookout.run, self._lookout_context)
                self._issues.mailbox = await nursery.start(
                    self._issues.run, self.ask, self.tell
                )
                self._mailbox = await nursery.start(schedules.run, self._context)
                for message in self._early:
                    self.tell(message)
                self._early.clear()
                task_status.started(self._mailbox)
        finally:
            self._mailbox = self._lookout = None
            self._early.clear()
