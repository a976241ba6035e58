"""The lookout: sees that what schedules wait for has come to pass, and tells them.

It polls nothing. That a job has ended, or that a checkout was looked at, only says that
there is something to be read: what has come to pass is read from the history of this
home and from the repository, from where a schedule has seen it. So a restart loses
nothing and tells nothing twice.

Its notices are few: of each repository one at a time of its jobs, one of each look at
its checkout, and one of what was read there.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors.followed import Followed
from forge_actors.actors.job_ends import JobEnds
from forge_actors.actors.lookout_messages import (
    Commits,
    Follow,
    JobsEnded,
    Leave,
    Looked,
    Message,
)
from forge_actors.actors.lookout_messages import Context as Context
from forge_actors.actors.mailbox import Inbox, Mailbox, open_mailbox, serving
from forge_actors.actors.schedules_messages import Signalled
from forge_actors.domain.causes import OF_CHECKOUT, AllOf, Branch, Clean, Ended, Files
from forge_actors.domain.errors import ForgeError
from forge_actors.domain.schedules import MAX_CATCH_UP
from forge_actors.domain.sightings import (
    MAX_BRANCHES,
    CommitSeen,
    matching,
    see_commit,
    see_look,
    see_refs,
)
from forge_actors.domain.triggers import On

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.repositories import Repository
    from forge_actors.domain.schedules import Schedule
    from forge_actors.domain.triggers import Window

log = logging.getLogger(__name__)

#: Repositories that are read at once.
PARALLEL = 4
#: Causes that this actor sees.
SEEN_HERE = (Ended, AllOf, *OF_CHECKOUT)


@trio.lowlevel.enable_ki_protection
async def run(
    context: Context, *, task_status: trio.TaskStatus[Mailbox[Message]]
) -> None:
    """Look out until cancelled."""
    mailbox: Mailbox[Message]
    inbox: Inbox[Message]
    mailbox, inbox = open_mailbox("lookout")
    async with trio.open_nursery() as children:
        actor = _Lookout(context, mailbox, children)
        try:
            with serving(inbox):
                task_status.started(mailbox)
                while True:
                    await actor.handle(await inbox.receive())
        finally:
            actor.close()


class _Lookout:
    """The state of the actor's task."""

    def __init__(
        self, context: Context, mailbox: Mailbox[Message], nursery: trio.Nursery
    ) -> None:
        self._context = context
        self._store = context.store
        self._mailbox = mailbox
        self._nursery = nursery
        self._followed: dict[str, Followed] = {}
        self._jobs = JobEnds(
            context.store,
            context.clock,
            ring=self._ring,
            guard=self._guarded,
            tell=self._tell,
        )
        #: By repository: those that look at its checkout.
        self._of_checkout: dict[str, dict[str, Followed]] = {}
        #: The repositories of whose jobs something is to be read.
        self._rung: set[str] = set()
        #: The repositories that are read now, and those that are to be read again.
        self._reading: set[str] = set()
        self._again: set[str] = set()
        self._slots = trio.Semaphore(PARALLEL)

    def close(self) -> None:
        self._jobs.close()

    async def handle(self, message: Message) -> None:
        match message:
            case Follow(schedule):
                self._follow(schedule)
            case Leave(schedule):
                self._leave(schedule)
            case JobsEnded(repo):
                self._rung.discard(repo)
                await self._jobs.read(repo)
            case Looked(repo):
                self._looked(repo, self._of(repo))
            case Commits():
                self._commits(message)

    def _of(self, repo: str) -> list[Followed]:
        return list(self._of_checkout.get(repo, {}).values())

    def _ring(self, repo: str) -> None:
        if repo not in self._rung:
            self._rung.add(repo)
            self._mailbox.tell(JobsEnded(repo))

    # -- whom it looks out for -------------------------------------------------------

    def _follow(self, schedule: Schedule) -> None:
        trigger = schedule.definition.trigger
        self._leave(schedule.id)
        if not isinstance(trigger, On) or not isinstance(trigger.cause, SEEN_HERE):
            return
        one = Followed(schedule, trigger.cause)
        self._followed[one.id] = one
        if one.of_jobs:
            self._jobs.add(one)
            return
        first = one.repo not in self._of_checkout
        self._of_checkout.setdefault(one.repo, {})[one.id] = one
        if first:
            self._watch()
        self._looked(one.repo, [one])

    def _leave(self, schedule: str) -> None:
        one = self._followed.pop(schedule, None)
        if one is None:
            return
        if one.of_jobs:
            self._jobs.drop(one)
            return
        others = self._of_checkout[one.repo]
        del others[schedule]
        if not others:
            del self._of_checkout[one.repo]
            self._watch()

    def _watch(self) -> None:
        self._context.watch(frozenset(self._of_checkout))

    def _tell(
        self,
        one: Followed,
        windows: Sequence[Window] = (),
        earlier: int = 0,
        blind: str = "",
    ) -> None:
        """Tell its schedule how far is seen now, and what came to pass."""
        one.blind = blind
        late = max(0, len(windows) - MAX_CATCH_UP)
        told = Signalled(
            *(one.id, one.begun, one.seen, tuple(windows[late:])),
            earlier=earlier + late,
            blind=blind,
        )
        self._context.tell(told)

    def _guarded(self, one: Followed, see: Callable[[Followed], None]) -> None:
        """Look for one schedule; a bug that it meets is its own."""
        try:
            see(one)
        except ForgeError:
            raise
        except Exception as error:
            log.exception("nothing is seen for schedule %s any more", one.name)
            self._leave(one.id)
            self._tell(one, blind=f"it failed: {type(error).__name__}: {error}")

    # -- checkouts -------------------------------------------------------------------

    def _looked(self, repo: str, ones: Sequence[Followed]) -> None:
        for one in ones:
            if isinstance(one.cause, Clean):
                self._guarded(one, self._see_look)
        if any(isinstance(one.cause, Branch | Files) for one in ones):
            self._read(repo)

    def _see_look(self, one: Followed) -> None:
        before, wall = one.look, self._context.clock.wall()
        one.look, window = see_look(before, self._store.look(one.repo), wall)
        if one.look != before:
            self._tell(one, () if window is None else (window,))

    def _read(self, repo: str) -> None:
        """Read its commits, once for whatever happens meanwhile."""
        repository = self._context.repository(repo)
        if repo in self._reading:
            self._again.add(repo)
        elif repository is not None:
            self._reading.add(repo)
            ones = [
                one for one in self._of(repo) if isinstance(one.cause, Branch | Files)
            ]
            patterns = {
                (one.cause.pattern, one.commit.head)
                for one in ones
                if isinstance(one.cause, Files) and one.commit is not None
            }
            of = frozenset((one.id, one.begun) for one in ones)
            self._nursery.start_soon(self._read_commits, repository, of, patterns)

    async def _read_commits(
        self,
        repository: Repository,
        of: frozenset[tuple[str, int]],
        patterns: set[tuple[str, str | None]],
    ) -> None:
        told = Commits(repository.id, of)
        try:
            async with self._slots:
                heads, head = await self._context.commits.heads(repository)
                changed: dict[tuple[str, str | None], list[str] | None] = {}
                for pattern, before in patterns:
                    if head is not None and before != head:
                        changed[pattern, before] = await self._context.commits.changed(
                            repository, before, head, pattern
                        )
                told = Commits(repository.id, of, heads, head, changed)
        except ForgeError as error:
            told = structs.replace(told, problem=str(error))
        self._mailbox.tell(told)

    def _commits(self, told: Commits) -> None:
        self._reading.discard(told.repo)
        for one in self._of(told.repo):
            if (one.id, one.begun) in told.of:
                self._guarded(one, partial(self._see_commits, told))
        if told.repo in self._again:
            self._again.discard(told.repo)
            self._read(told.repo)

    def _see_commits(self, told: Commits, one: Followed) -> None:
        before = one.refs or one.commit
        windows: list[Window] = []
        blind, wall = told.problem, self._context.clock.wall()
        if blind:
            pass
        elif isinstance(one.cause, Branch):
            heads = matching(one.cause, told.heads)
            if len(heads) > MAX_BRANCHES:
                blind = f"{one.cause.pattern} means more than {MAX_BRANCHES} branches"
            else:
                one.refs, windows = see_refs(one.refs, heads, wall)
        elif isinstance(one.cause, Files):
            if one.commit is None:
                one.commit = CommitSeen(told.head)
            elif told.head is not None and told.head != one.commit.head:
                key = one.cause.pattern, one.commit.head
                if key not in told.changed:
                    return  # it was changed meanwhile, and the next read is for it
                files = told.changed[key]
                one.commit, window = see_commit(one.commit, told.head, files, wall)
                windows = [] if window is None else [window]
        if (one.refs or one.commit) != before or blind != one.blind:
            self._tell(one, [one.since_begun(w) for w in windows], blind=blind)
