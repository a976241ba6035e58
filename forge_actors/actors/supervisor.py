"""The supervisor actor: owns the capacity tokens and the repository actors.

It alone counts tokens. A repository tells it what could start (`Wanted`); it answers
with a grant of all the tokens of one job, at most one for each repository until that
repository has wanted again, and never waits for any of them. Grants come back through
its own inbox (`Returned`).

Repository actors are transient children: awake while they own a job, restarted from
what was saved when they fail; more failures than `RestartPolicy` allows end the
supervisor, and with it the runtime.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

import trio
from msgspec import Struct

from forge_actors.actors import repository
from forge_actors.actors.mailbox import Inbox, Mailbox, Reply, open_mailbox, serving
from forge_actors.actors.tokens import Grant, Returned
from forge_actors.actors.worker import Worker
from forge_actors.domain.capacity import (
    Capacity,
    Limits,
    Offer,
    RepositoryLimits,
    TokenUse,
)
from forge_actors.domain.changes import Noted
from forge_actors.domain.errors import MailboxClosed, RestartIntensityReached
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import Job
from forge_actors.domain.line import Line
from forge_actors.domain.place import place
from forge_actors.domain.recovery import StopReason
from forge_actors.domain.restarts import RestartHistory, RestartPolicy, wants_restart
from forge_actors.domain.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.launch import LaunchOrder, Receipt
    from forge_actors.domain.ports import Clock, Launcher, Store

log = logging.getLogger(__name__)

#: Seconds from one safety pass to the next, while anything runs or waits and otherwise.
BUSY_PASS_SECONDS = 5.0
IDLE_PASS_SECONDS = 30.0
#: Seconds between two looks at the machine's load, and only while work waits.
PRESSURE_SECONDS = 5.0

RepositoryMailbox = Mailbox[repository.Message]


class Wanted(Struct, frozen=True):
    """What a repository could start now; replaces what it wanted before."""

    repo: str
    offers: tuple[Offer, ...]


class Open(Struct, frozen=True):
    """The mailbox of a repository's actor, which is woken if it sleeps."""

    repo: str
    reply: Reply[RepositoryMailbox]


class Submitted(Struct, frozen=True):
    """Jobs that were accepted and saved, on their way to their repository."""

    repo: str
    jobs: tuple[Job, ...]


class Ended(Struct, frozen=True):
    """A repository's actor has ended; `error` if it failed."""

    repo: str
    error: Exception | None


class Survey(Struct, frozen=True):
    """The counts at one moment."""

    tokens: dict[str, TokenUse]
    active_repositories: int
    awake: int
    pressure: str | None
    waiting: int


class Count(Struct, frozen=True):
    """The answer is a survey."""

    reply: Reply[Survey]


class Place(Struct, frozen=True):
    """Which tokens offers lack, and their places in line; one answer for each.

    With each offer comes how many of its repository are before it, or None if nobody
    wants to know its place, and since when it waits.
    """

    offers: tuple[tuple[Offer, int | None, float], ...]
    reply: Reply[list[Waiting]]


class SetLimits(Struct, frozen=True):
    """Grant by other limits from now on; what runs is left alone.

    The store gives the ledgers that are loaded from now on the limits for repositories.
    """

    limits: Limits
    repositories: RepositoryLimits


class Stop(Struct, frozen=True):
    """Grant nothing more, stop every worker, end every repository, then end."""

    reason: StopReason


Message = (
    Wanted | Returned | Open | Submitted | Ended | Count | Place | SetLimits | Stop
)


class Context(Struct, frozen=True):
    """What the supervisor is given by the runtime."""

    limits: Limits
    store: Store
    launcher: Launcher
    clock: Clock
    #: Why the machine is under pressure now, or None.
    pressure: Callable[[], str | None]
    make_order: Callable[[Job], LaunchOrder]
    #: Says that a repository's folder is gone, or None if it is there.
    gone: Callable[[str], str | None]
    #: Receipts of attempts that ended while nobody owned them, by job and attempt.
    unclaimed: dict[tuple[str, int], Receipt]
    last_dispatch: dict[str, float]
    #: Repositories with jobs that have not ended.
    busy: tuple[str, ...]
    restarts: RestartPolicy = RestartPolicy()
    #: Try a failed pass again, as an embedding program wants; else it ends the runtime.
    retries_passes: bool = False


async def run(
    context: Context, *, task_status: trio.TaskStatus[Mailbox[Message]]
) -> None:
    """Own the tokens until stopped."""
    mailbox: Mailbox[Message]
    inbox: Inbox[Message]
    mailbox, inbox = open_mailbox()
    async with trio.open_nursery() as children:
        actor = _Supervisor(context, mailbox, children)
        with serving(inbox):
            for repo in context.busy:
                await actor.open(repo)
            task_status.started(mailbox)
            while not (actor.finished and inbox.empty):
                await actor.serve(inbox)


class _Supervisor:
    """The state of the supervisor's task."""

    def __init__(
        self, context: Context, mailbox: Mailbox[Message], nursery: trio.Nursery
    ) -> None:
        self._context = context
        self._mailbox = mailbox
        self._nursery = nursery
        self._capacity = Capacity(context.limits)
        self._line = Line(context.last_dispatch)
        self._grants: dict[str, Grant] = {}
        self._children: dict[str, RepositoryMailbox] = {}
        #: Repositories whose actor ended before it was told of new jobs.
        self._missed: set[str] = set()
        self._history = RestartHistory(context.restarts)
        self._last_grant = 0
        self._sampled_at = -PRESSURE_SECONDS
        self._pass_at = trio.current_time() + IDLE_PASS_SECONDS
        self._stop: StopReason | None = None
        self._child = repository.Context(
            store=context.store,
            launcher=context.launcher,
            clock=context.clock,
            wanted=lambda repo, offers: self._notice(Wanted(repo, offers)),
            make_worker=self._make_worker,
            make_order=context.make_order,
            gone=context.gone,
            claim_receipt=lambda job, n: context.unclaimed.pop((job, n), None),
            keep_receipt=self._keep_receipt,
        )

    @property
    def finished(self) -> bool:
        return self._stop is not None and not self._children

    @property
    def _period(self) -> float:
        busy = self._grants or self._line
        return BUSY_PASS_SECONDS if busy else IDLE_PASS_SECONDS

    async def serve(self, inbox: Inbox[Message]) -> None:
        """Handle what is in the inbox, or make the safety pass; then grant."""
        message: Message | None = None
        with trio.move_on_at(self._pass_at):
            message = await inbox.receive()
        if message is None:
            self._make_pass()
        while message is not None:
            await self.handle(message)
            message = inbox.receive_nowait()
        try:
            self._grant_round()
        except Exception:
            again = self._context.retries_passes
            if not again or not self._history.allow(trio.current_time()):
                raise
            log.exception("a pass failed; it is made again")
        self._pass_at = min(self._pass_at, trio.current_time() + self._period)

    async def handle(self, message: Message) -> None:
        match message:
            case Wanted(repo, offers):
                if repo in self._children:
                    self._line.put(repo, offers, self._context.clock.now())
            case Returned(grant):
                del self._grants[grant.id]
                self._capacity.give_back(grant.id, grant.repo, grant.tokens)
            case Open(repo, reply):
                with reply:
                    reply.answer(await self.open(repo))
            case Submitted(repo, jobs):
                if not _tell(await self.open(repo), repository.Enqueue(jobs)):
                    self._missed.add(repo)
            case Ended(repo, error):
                await self._child_ended(repo, error)
            case Count(reply):
                with reply:
                    reply.answer(self._survey())
            case Place(offers, reply):
                with reply:
                    now = self._context.clock.now()
                    line, capacity = self._line, self._capacity
                    reply.answer(
                        [
                            place(*asked, capacity, line, now, self._jobs_of)
                            for asked in offers
                        ]
                    )
            case SetLimits(limits, repositories):
                self._capacity.set_limits(limits)
                self._line.reconsider()
                # The pressure is another one by other limits.
                self._sampled_at = -PRESSURE_SECONDS
                for child in self._children.values():
                    _tell(child, repository.SetLimits(repositories))
            case Stop(reason):
                self._stop = reason
                for child in self._children.values():
                    _tell(child, repository.Stop(reason))

    async def open(self, repo: str) -> RepositoryMailbox:
        """The mailbox of the repository's actor, started if it is not awake."""
        while (child := self._children.get(repo)) is None:
            self._missed.discard(repo)  # it loads every job that is saved
            try:
                child = await self._nursery.start(self._run_child, repo)
            except Exception as error:  # noqa: BLE001 - counted, and tried again
                self._count_failure(repo, error)
                continue
            self._children[repo] = child
            if self._stop is not None:
                _tell(child, repository.Stop(self._stop))
        return child

    async def _run_child(
        self, repo: str, *, task_status: trio.TaskStatus[RepositoryMailbox]
    ) -> None:
        error: Exception | None = None
        try:
            await repository.run(repo, self._child, task_status=task_status)
        except Exception as failure:
            if repo not in self._children:
                raise  # it never started: `open` raises this itself
            error = failure
        self._notice(Ended(repo, error))

    def _notice(self, message: Wanted | Ended) -> None:
        # A child may act once more after we have failed or were killed.
        with suppress(MailboxClosed):
            self._mailbox.tell(message)

    def _keep_receipt(self, receipt: Receipt) -> None:
        self._context.unclaimed[receipt.job, receipt.attempt] = receipt

    async def _child_ended(self, repo: str, error: Exception | None) -> None:
        del self._children[repo]
        self._line.drop(repo)
        if error is None:
            if repo in self._missed:
                await self.open(repo)
            return
        self._count_failure(repo, error)
        if wants_restart("transient", failed=True):
            await self.open(repo)

    def _count_failure(self, repo: str, error: Exception) -> None:
        """Raise RestartIntensityReached if it is one failure too many."""
        log.error("the actor of repository %s failed", repo, exc_info=error)
        if not self._history.allow(trio.current_time()):
            raise RestartIntensityReached(
                f"repository actors failed more than {self._history.policy.intensity}"
                f" times within {self._history.policy.period:.0f} s"
            ) from error

    def _make_worker(
        self, grant: Grant, owner: Mailbox[repository.Message]
    ) -> repository.Worker:
        context = self._context
        return Worker(
            grant,
            owner,
            context.launcher,
            context.clock,
            self._keep_receipt,
        )

    def _make_pass(self) -> None:
        self._pass_at = trio.current_time() + self._period
        for child in self._children.values():
            _tell(child, repository.Pass())

    def _grant_round(self) -> None:
        if self._stop is not None or not self._line:
            return
        self._sample_pressure()
        now = self._context.clock.now()
        while (offer := self._line.next(self._capacity, now)) is not None:
            self._line.drop(offer.repo)
            self._line.last_dispatch[offer.repo] = now
            self._last_grant += 1
            grant = Grant(
                f"g{self._last_grant}", offer.repo, offer.tokens, self._mailbox.tell
            )
            self._grants[grant.id] = grant
            self._capacity.take(grant.id, offer.repo, offer.tokens)
            if not _tell(self._children[offer.repo], repository.Granted(grant)):
                grant.give_back()

    def _sample_pressure(self) -> None:
        if trio.current_time() - self._sampled_at < PRESSURE_SECONDS:
            return
        self._sampled_at = trio.current_time()
        reason = self._context.pressure()
        if (reason is None) != (self._capacity.pressure is None):
            kind = "pressure_ended" if reason is None else "pressure_began"
            data: dict[str, object] = {"reason": reason or ""}
            event = Event(kind, self._context.clock.now(), data=data)
            self._context.store.save([Noted(event)])
        self._capacity.pressure = reason

    def _survey(self) -> Survey:
        capacity = self._capacity
        return Survey(
            tokens={
                kind: capacity.use(kind, self._jobs_of) for kind in capacity.kinds()
            },
            active_repositories=len(capacity.active_repositories),
            awake=len(self._children),
            pressure=capacity.pressure,
            waiting=sum(1 for _ in self._line.offers()),
        )

    def _jobs_of(self, grants: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(job for g in grants if (job := self._grants[g].job) is not None)


def _tell(child: RepositoryMailbox, message: repository.Message) -> bool:
    """Tell a child; False if it has just ended, which it reports itself."""
    try:
        child.tell(message)
    except MailboxClosed:
        return False
    return True
