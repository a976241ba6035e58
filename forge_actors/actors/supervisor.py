"""The supervisor actor: owns the capacity tokens and the repository actors.

It alone counts tokens. A repository tells it what could start (`Wanted`); it answers
with a grant of all the tokens of one job, at most one for each repository until that
repository has wanted again, and never waits for any of them. Grants come back through
its own inbox (`Returned`).

Repository actors are transient children: awake while they own a job, restarted from
what was saved when they fail. One that fails more often than `RestartPolicy` allows is
restarted with care, and in the end set aside; everything else goes on.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import trio

from forge_actors.actors import repository, repository_context, repository_messages
from forge_actors.actors.ahead import Ahead
from forge_actors.actors.alarm import Alarm
from forge_actors.actors.aside import Aside
from forge_actors.actors.clean_up import CleanUp
from forge_actors.actors.closings import Closings
from forge_actors.actors.mail import mail_counts
from forge_actors.actors.mailbox import open_mailbox, serving, told
from forge_actors.actors.pressure import PressureLook
from forge_actors.actors.signs import SignsOfLife
from forge_actors.actors.supervisor_context import Context as Context
from forge_actors.actors.supervisor_messages import (
    AheadDue,
    CareEnded,
    CleanUpEnded,
    ClosingsDue,
    Count,
    CountMail,
    Ended,
    Message,
    Open,
    OpenMaintenance,
    PassDue,
    Place,
    ProviderRefused,
    Relocated,
    RepositoryMailbox,
    SetLimits,
    SetPause,
    SetPolicy,
    Stop,
    Submitted,
    Survey,
    TakeBack,
    Wanted,
)
from forge_actors.actors.tokens import Grant, Grants, Returned
from forge_actors.domain.changes import Noted
from forge_actors.domain.errors import MailboxClosed, SetAsideError
from forge_actors.domain.line import Line
from forge_actors.domain.place import places
from forge_actors.domain.recovery import StopReason
from forge_actors.domain.restarts import RestartHistory, wants_restart
from forge_actors.domain.scopes import DRAIN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.actors.mailbox import Inbox, Mailbox, Reply
    from forge_actors.domain.launch import Receipt

log = logging.getLogger(__name__)

#: Seconds from one safety pass to the next, while anything runs or waits and otherwise.
BUSY_PASS_SECONDS = 5.0
IDLE_PASS_SECONDS = 30.0
#: Repositories that a pass looks at beside those in which something runs, in turn.
PASS_REPOSITORIES = 500


@trio.lowlevel.enable_ki_protection
async def run(
    context: Context, *, task_status: trio.TaskStatus[Mailbox[Message]]
) -> None:
    """Own the tokens until stopped."""
    mailbox: Mailbox[Message]
    inbox: Inbox[Message]
    mailbox, inbox = open_mailbox("supervisor")
    async with trio.open_nursery() as children:
        actor = _Supervisor(context, mailbox, children)
        with serving(inbox), actor.keeping_time():
            for repo in context.busy:
                with suppress(SetAsideError):
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
        self._grants = Grants(context.limits, mailbox.tell, context.store.hasten)
        self._capacity = self._grants.capacity
        self._line = Line(context.last_dispatch)
        self._children: dict[str, RepositoryMailbox] = {}
        self._ahead = Ahead(
            self._grants, self._line, self._children, lambda: told(mailbox, AheadDue())
        )
        self._closings = Closings(context, self._grants, mailbox.tell, self._tell_all)
        self._accounts = self._closings.accounts
        #: Repositories whose actor ended before it was told of new jobs.
        self._missed: set[str] = set()
        self._history = RestartHistory(context.restarts)
        self._aside = Aside(
            context, self._history, self._grants, nursery, self._keep_receipt, mailbox
        )
        self._pressure = PressureLook(context, self._capacity)
        self._clean_up = CleanUp(context)
        self._pass = Alarm(
            lambda: mailbox.tell(PassDue()), trio.current_time() + IDLE_PASS_SECONDS
        )
        self._signs = SignsOfLife(context.launcher)
        self._stop: StopReason | None = None
        self._child = repository_context.Context(
            store=context.store,
            launcher=context.launcher,
            clock=context.clock,
            rival=self._ahead.rival,
            wanted=lambda repo, offers: self._notice(Wanted(repo, offers)),
            make_worker=partial(context.make_worker, self._keep_receipt),
            make_order=context.make_order,
            gone=context.gone,
            kept_receipt=lambda job, attempt: context.unclaimed.get((job, attempt)),
            adopt=self._grants.adopt,
            forget=self._forget,
            keep_receipt=self._keep_receipt,
            pauses=lambda: tuple(self._closings.pauses),
            accounts=self._accounts.told,
            policy=self._closings.policies.told,
            refused=self._closings.tell_of_refusal,
            used=self._closings.used,
            attended=context.attended,
            careful=self._aside.is_careful,
            settled=self._grants.settle,
        )

    @property
    def finished(self) -> bool:
        runs = self._children or self._aside.watches or not self._clean_up.ended
        return self._stop is not None and not runs

    @property
    def _period(self) -> float:
        return BUSY_PASS_SECONDS if self._grants or self._line else IDLE_PASS_SECONDS

    @contextmanager
    def keeping_time(self) -> Iterator[None]:
        """While the block lasts, safety passes become due."""
        self._nursery.start_soon(self._pass.run)
        self._nursery.start_soon(self._ahead.alarm.run)
        if not self._clean_up.ended:
            self._nursery.start_soon(self._clean_up.keep, self._mailbox)
        try:
            with self._closings.keeping_time(self._nursery):
                yield
        finally:
            self._pass.stop()
            self._ahead.alarm.stop()

    async def serve(self, inbox: Inbox[Message]) -> None:
        """Handle what is in the inbox; then grant."""
        message: Message | None = await inbox.receive()
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
        if self._grants.came_back:
            self._grants.settle()
        due = trio.current_time() + self._period
        if due < self._pass.due:
            self._pass.set(due)

    async def handle(self, message: Message) -> None:
        match message:
            case Wanted(repo, offers):
                if repo in self._children:
                    self._line.put(repo, offers, self._context.clock.now())
            case Returned(grant):
                self._grants.take_back(grant)
                self._ahead.returned(grant)
                self._accounts.returned(grant)
            case ProviderRefused():
                self._closings.refused(message)
            case ClosingsDue():
                self._closings.look()
            case Open(repo, reply):
                with reply:
                    await self._answer_with(repo, reply)
            case Submitted(repo, jobs):
                with suppress(SetAsideError):  # they are loaded when it is tried again
                    child = await self.open(repo)
                    if not told(child, repository_messages.Enqueue(jobs)):
                        self._missed.add(repo)
            case TakeBack(repo):
                await self._take_back(repo)
            case CareEnded(repo):
                self._aside.care_ended(repo)
            case Ended(repo, error):
                await self._child_ended(repo, error)
            case Count(reply):
                with reply:
                    reply.answer(self._survey())
            case CountMail(reply):
                with reply:
                    kept = self._children, self._aside, self._clean_up
                    reply.answer(mail_counts(self._mailbox, *kept))
            case Place(offers, reply):
                with reply:
                    now, jobs_of = self._context.clock.now(), self._grants.jobs_of
                    counts = self._capacity, self._line
                    reply.answer(places(offers, *counts, now, jobs_of))
            case SetPause() | SetPolicy():
                with message.reply:
                    self._closings.set(message)
                    self._ahead.withdraw()
            case Relocated(repo):
                if repo in self._children:  # others load what is saved
                    told(self._children[repo], repository_messages.Relocated())
            case SetLimits(limits, repositories):
                self._closings.set_limits(limits)
                self._ahead.withdraw()
                self._line.reconsider()
                # The pressure is another one by other limits.
                self._pressure.again()
                self._tell_all(repository_messages.SetLimits(repositories))
                self._clean_up.reconsider()
            case OpenMaintenance(reply):
                with reply:
                    self._clean_up.answer(reply)
            case CleanUpEnded():
                pass  # whether that was the last is looked at after each message
            case AheadDue():
                self._ahead.look()
            case PassDue():
                self._make_pass()
            case Stop(reason, because):
                self._stop = reason
                self._grants.withdraw(lambda _: True)
                if because is not None:
                    self._context.store.save([Noted(because)])
                self._tell_all(repository_messages.Stop(reason))
                self._clean_up.stop()
                await self._aside.stop(reason)

    async def open(self, repo: str) -> RepositoryMailbox:
        """The mailbox of the repository's actor, started if it is not awake.

        Raises:
            SetAsideError: it was set aside.
        """
        while (child := self._children.get(repo)) is None:
            self._missed.discard(repo)  # it loads every job that is saved
            self._aside.check(repo)
            try:
                child = await self._nursery.start(self._run_child, repo)
            except Exception as error:  # noqa: BLE001 - counted, and tried again
                self._aside.failed(repo, error)
                continue
            self._children[repo] = child
            if self._stop is not None:
                told(child, repository_messages.Stop(self._stop))
        return child

    @trio.lowlevel.enable_ki_protection
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
        try:
            self._mailbox.tell(message)
        except MailboxClosed:
            return  # a child may act once more after we have failed or were killed

    def _keep_receipt(self, receipt: Receipt) -> None:
        self._context.unclaimed[receipt.job, receipt.attempt] = receipt

    def _forget(self, job: str, attempt: int) -> None:
        self._context.unclaimed.pop((job, attempt), None)
        self._context.launcher.forget(job, attempt)

    async def _answer_with(self, repo: str, reply: Reply[RepositoryMailbox]) -> None:
        try:
            reply.answer(await self.open(repo))
        except SetAsideError as error:
            reply.refuse(error)

    async def _child_ended(self, repo: str, error: Exception | None) -> None:
        del self._children[repo]
        self._line.drop(repo)
        self._ahead.rival(repo, None)
        again = repo in self._missed
        if error is not None:
            self._aside.failed(repo, error)
            again = wants_restart("transient", failed=True)
        else:
            self._aside.rested(repo)
        with suppress(SetAsideError):
            if again:
                await self.open(repo)
        for grant in self._grants.ownerless(repo):
            grant.give_back()  # what it was used for is not there any more

    async def _take_back(self, repo: str) -> None:
        await self._aside.take_back(repo)
        child = self._children.get(repo)
        if child is None:
            with suppress(SetAsideError):
                await self.open(repo)
        else:
            # It has to load anew what it has left alone.
            self._missed.add(repo)
            told(child, repository_messages.Stop("detached"))

    def _make_pass(self) -> None:
        self._pass.set(trio.current_time() + self._period)
        self._signs.ask(runs=bool(self._grants))
        self._closings.look()  # the machine may have slept through a moment
        active = self._capacity.active_repositories
        others = [repo for repo in self._children if repo not in active]
        for repo in (*active, *others[:PASS_REPOSITORIES]):
            child = self._children.get(repo)
            if child is not None:
                told(child, repository_messages.Pass())
        for repo in others[:PASS_REPOSITORIES]:  # to the end: others come first now
            self._children[repo] = self._children.pop(repo)

    def _grant_round(self) -> None:
        if self._stop is not None or not self._line or self._closings.halted:
            return
        self._pressure.sample()
        self._accounts.settle(self._line.offers())
        now = self._context.clock.now()
        while (offer := self._line.next(self._capacity, now)) is not None:
            self._give(self._grants.issue(offer), now)
        for grant in self._ahead.issue(now):
            self._give(grant, now)

    def _give(self, grant: Grant, now: float) -> None:
        self._line.drop(grant.repo)
        self._line.last_dispatch[grant.repo] = now
        self._accounts.granted(grant)
        granted = repository_messages.Granted(grant)
        if not told(self._children[grant.repo], granted):
            grant.give_back()

    def _tell_all(self, message: repository_messages.Message) -> None:
        for child in self._children.values():
            told(child, message)

    def _survey(self) -> Survey:
        capacity = self._capacity
        return Survey(
            tokens=self._grants.uses(),
            active_repositories=len(capacity.active_repositories),
            awake=len(self._children),
            pressure=capacity.pressure,
            draining=self._closings.pauses.get(DRAIN) is not None,
            silence=self._signs.silence(runs=bool(self._grants)),
            waiting=sum(1 for _ in self._line.offers()),
            closed=self._accounts.closed,
            no_clean_up=self._clean_up.given_up,
        )
