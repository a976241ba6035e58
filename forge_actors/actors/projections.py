"""The projections actor: keeps what is known of the git status of repositories fresh.

It looks at a repository soon after a job of it has ended or its files changed; and when
there is nothing else to do at one after the other, in an order that outlives restarts.
Nobody waits for it: who has news leaves them on its board, and readers read what was
saved. All samples together take no more than a share of one processor.

Its notices are few however much happens: one of the board at a time, one a second of
files, one for each of the `PARALLEL` samples.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio

from forge_actors.actors.alarm import Alarm
from forge_actors.actors.mailbox import Inbox, Mailbox, open_mailbox, serving
from forge_actors.actors.projections_messages import (
    BoardRang,
    Due,
    FilesChanged,
    LimitsChanged,
    Message,
    Sampled,
    Watched,
)
from forge_actors.actors.projections_messages import Context as Context
from forge_actors.actors.watches import Watches
from forge_actors.domain.changes import LookSaved
from forge_actors.domain.events import Event
from forge_actors.domain.looking import (
    ADDED,
    AFTER_RESTART,
    FILES_CHANGED,
    GAP_SECONDS,
    ROUND,
    Look,
    LookLimits,
    Pace,
    Waiting,
)

if TYPE_CHECKING:
    from forge_actors.domain.git_status import GitStatus
    from forge_actors.domain.repositories import Repository

#: Samples that are made at once: one that a slow disk holds up must not hold up all.
PARALLEL = 4
#: Seconds between two looks at the board, however much there is.
BOARD_SECONDS = 0.25
#: Of many repositories that are added at once, so many wait for a sample at a time; the
#: safety round comes to the others.
MAX_ADDED = 64
#: Seconds between two looks whether anything can be saved again.
TROUBLE_SECONDS = 5.0


@trio.lowlevel.enable_ki_protection
async def run(
    context: Context, *, task_status: trio.TaskStatus[Mailbox[Message]]
) -> None:
    """Look at repositories until cancelled."""
    mailbox: Mailbox[Message]
    inbox: Inbox[Message]
    mailbox, inbox = open_mailbox("git status")
    async with trio.open_nursery() as children:
        actor = _Projections(context, mailbox, children)
        try:
            with serving(inbox):
                task_status.started(mailbox)
                actor.load()
                while True:
                    await actor.serve(inbox)
        finally:
            context.board.disarm()


class _Projections:
    """The state of the actor's task."""

    def __init__(
        self, context: Context, mailbox: Mailbox[Message], nursery: trio.Nursery
    ) -> None:
        self._context = context
        self._mailbox = mailbox
        self._nursery = nursery
        #: What is out of date, or under way; all else is only in the store.
        self._looks: dict[str, Look] = {}
        self._waiting = Waiting()
        #: The repositories that are sampled now, each with the mark that is answered.
        self._under_way: dict[str, int] = {}
        self._pace = Pace()
        self._round_at = 0.0
        self._board_at = -math.inf
        self._watches = Watches(context, mailbox.tell, nursery)
        self._alarm = Alarm(lambda: mailbox.tell(Due()), math.inf)
        nursery.start_soon(self._alarm.run)
        nursery.start_soon(self._watches.listen)

    def load(self) -> None:
        """Take up what was not done when the last runtime ended."""
        now = self._now
        self._round_at = now + self._limits.period
        for look in self._context.store.unfinished_looks():
            if look.dirty is None:
                look = look.marked(AFTER_RESTART, now)
            self._put(look)
            if self._context.active(look.repo):
                self._watches.use(look.repo, now)
        self._watches.keep(self._context.board.awaited, now)
        self._context.board.arm(self._ring)
        self._go_on()

    async def serve(self, inbox: Inbox[Message]) -> None:
        """Handle what is in the inbox; then begin what is due."""
        message: Message | None = await inbox.receive()
        while message is not None:
            self._handle(message)
            message = inbox.receive_nowait()
        self._go_on()

    def _handle(self, message: Message) -> None:
        match message:
            case BoardRang():
                self._read_board()
            case FilesChanged(repos):
                for repo in sorted(repos):
                    self._mark(repo, FILES_CHANGED)
            case Watched(repo, problem):
                self._watches.answered(repo, problem)
                if problem is None:
                    self._mark(repo, FILES_CHANGED)  # they may have before
            case Sampled():
                self._sampled(message)
            case Due():
                pass  # what is due is begun in any case
            case LimitsChanged():
                due = self._now + self._limits.period
                self._round_at = min(self._round_at, due)
                self._watches.limits_changed()

    @property
    def _now(self) -> float:
        return self._context.clock.now()

    @property
    def _limits(self) -> LookLimits:
        return self._context.limits()

    def _ring(self) -> None:
        self._mailbox.tell(BoardRang())

    # -- marks -----------------------------------------------------------------------

    def _read_board(self) -> None:
        now = self._board_at = self._now
        self._watches.keep(self._context.board.awaited, now)
        for repo, reason in self._context.board.take().items():
            if reason == ADDED and len(self._waiting) >= MAX_ADDED:
                continue
            if reason != ADDED:
                self._watches.use(repo, now)
            if reason is not None:
                self._mark(repo, reason)

    def _mark(self, repo: str, reason: str, source: str | None = None) -> None:
        """What is known of it is out of date. Saved when it was not so before."""
        look = self._looks.get(repo)
        if look is None:
            if self._context.repository(repo) is None:
                self._watches.drop(repo)
                return
            look = self._context.store.look(repo) or Look(repo)
        marked = look.marked(reason, self._now, source)
        self._put(marked)
        if look.dirty is None and reason != ROUND and self._context.saving():
            self._context.store.save([LookSaved(marked)], lazy=True)

    def _put(self, look: Look) -> None:
        self._looks[look.repo] = look
        if look.repo not in self._under_way:
            active = bool(self._context.active(look.repo))
            self._waiting.put(look.repo, look.due(active=active))

    # -- samples ---------------------------------------------------------------------

    def _go_on(self) -> None:
        """Begin the samples that are due, and set the alarm for what comes next."""
        now, limits = self._now, self._limits
        if now >= self._board_at + BOARD_SECONDS:
            self._context.board.arm(self._ring)
        self._watches.let_sleep(now)
        next_at = self._watches.next_at
        if limits.enabled and self._context.saving():
            if now >= self._round_at:
                self._turn(now)
            self._begin(now, limits)
            next_at = min(next_at, self._round_at)
            if len(self._under_way) < PARALLEL:
                due = max(self._waiting.first_due, self._pace.free_at)
                next_at = min(next_at, due)
        elif limits.enabled:
            next_at = min(next_at, now + TROUBLE_SECONDS)
        if self._board_at + BOARD_SECONDS > now:
            next_at = min(next_at, self._board_at + BOARD_SECONDS)
        self._alarm.set(trio.current_time() + max(0.0, next_at - now))

    def _begin(self, now: float, limits: LookLimits) -> None:
        while len(self._under_way) < PARALLEL and self._pace.free_at <= now:
            repo = self._waiting.take(now)
            if repo is None:
                return
            repository = self._context.repository(repo)
            if repository is None:
                del self._looks[repo]  # it was removed
                continue
            look = self._looks[repo]
            assert look.dirty is not None, "what waits is marked"
            self._under_way[repo] = look.dirty.nonce
            assumed = self._pace.begin(now, limits.share)
            self._nursery.start_soon(
                self._sample, repository, look.dirty.nonce, now, assumed, limits.timeout
            )

    async def _sample(
        self,
        repository: Repository,
        nonce: int,
        began: float,
        assumed: float,
        limit: float,
    ) -> None:
        repo = repository.id
        busy, fence = self._context.running(repo), self._context.fence(repo)
        sample = await self._context.sampler.sample(repository, limit)
        self._mailbox.tell(Sampled(repo, nonce, began, busy, fence, assumed, sample))

    def _sampled(self, done: Sampled) -> None:
        del self._under_way[done.repo]
        self._pace.end(done.assumed, done.sample.cost, self._limits.share)
        before = self._looks.pop(done.repo)
        if self._context.repository(done.repo) is None:
            return  # it was removed meanwhile
        status, event = done.sample.status, None
        if status is None:
            problem = done.sample.problem or "it gave no status"
            look = before.failed(done.nonce, problem, self._now)
        else:
            look = before.sampled(
                done.nonce, status, done.began, busy=done.busy, fence=done.fence
            )
            if before.status is not None and before.status.differs(status):
                event = _changed(done.repo, status, self._now)
        if look.dirty is not None:
            self._put(look)
        self._context.store.save([LookSaved(look, event)], lazy=True)
        self._context.looked(done.repo)

    def _turn(self, now: float) -> None:
        """The turn of the repository that was looked at longest ago."""
        period = self._limits.period
        if self._under_way or self._waiting.first_due <= now:
            self._round_at = now + GAP_SECONDS  # there is enough to do
            return
        self._round_at = now + period
        repo = self._context.store.oldest_look()
        if repo is None:
            return
        look = self._context.store.look(repo)
        if look is None or look.looked_at <= now - period:
            self._mark(repo, ROUND)


def _changed(repo: str, status: GitStatus, now: float) -> Event:
    data: dict[str, object] = {
        "branch": status.branch,
        "head": status.head,
        "clean": status.clean,
    }
    if status.operation is not None:
        data["operation"] = status.operation
    return Event("repository_status_changed", now, repo, data=data)
