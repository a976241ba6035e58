"""The repository actor: sole owner of one repository's job queue and leases.

Only `run` touches the ledger, so nothing is locked. A move is handed to the store and
its consequences for others follow when it is durable; a dispatch is durable before its
worker launches anything. The actor ends by itself when it owns no job, and only when
nothing waits in its inbox; a stop ends it once its workers have, a detach at once. When
it fails or is detached it lets go of what runs, for its next owner. It tells the
supervisor at most one `Wanted` for each batch of messages it has handled.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import trio

from forge_actors.actors.asked import Asked
from forge_actors.actors.attempts import Attempts
from forge_actors.actors.loading import load
from forge_actors.actors.mailbox import Inbox, Mailbox, open_mailbox, serving, told
from forge_actors.actors.moves import Moves
from forge_actors.actors.repository_context import Context
from forge_actors.actors.repository_messages import (
    ASKS,
    AccountsChanged,
    AskStopped,
    Cancel,
    DependencyEnded,
    Enqueue,
    Explain,
    Granted,
    LetGoOfLeft,
    Message,
    OfWaiting,
    Pass,
    PauseHere,
    PausesChanged,
    PolicyChanged,
    Relocated,
    SetEnabled,
    SetLimits,
    Steer,
    Stop,
    Withdraw,
)
from forge_actors.actors.tokens import Grant
from forge_actors.actors.told import told_of
from forge_actors.domain.capacity import Offer
from forge_actors.domain.jobs import RESERVED, Job, State
from forge_actors.domain.launch import WorkerExited, WorkerStarted
from forge_actors.domain.place import explain
from forge_actors.domain.poison import cause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.launch import Receipt
    from forge_actors.domain.ledger import Ledger
    from forge_actors.domain.recovery import StopReason

#: Seconds an actor that owns nothing stays awake, so that bursts find it running.
LINGER_SECONDS = 5.0


@trio.lowlevel.enable_ki_protection
async def run(
    repo: str, context: Context, *, task_status: trio.TaskStatus[Mailbox[Message]]
) -> None:
    """Own the repository until it owns no job, or is stopped."""
    mailbox: Mailbox[Message]
    inbox: Inbox[Message]
    mailbox, inbox = open_mailbox(f"repository {repo}")
    async with trio.open_nursery() as workers:
        actor = _Repository(repo, context, mailbox, workers)
        with actor.open(), serving(inbox, actor.discard):
            actor.recover()
            task_status.started(mailbox)
            while not (actor.finished and inbox.empty):
                message = await actor.next_message(inbox)
                looks = message is not None  # and nothing has changed
                while message is not None:
                    looks = looks and type(message) is Explain
                    actor.handle(message)
                    message = inbox.receive_nowait()
                if not looks:
                    actor.settle()


class _Repository:
    """The state of one repository's task."""

    def __init__(
        self,
        repo: str,
        context: Context,
        mailbox: Mailbox[Message],
        nursery: trio.Nursery,
    ) -> None:
        self._repo = repo
        self._context = context
        self._mailbox = mailbox
        self._ledger: Ledger = context.store.load(repo)
        self._attempts = Attempts(nursery)
        self._stop: StopReason | None = None
        #: What the supervisor knows we want; None if it is to be told again.
        self._told: tuple[Offer, ...] | None = ()
        self._lingers_until: float | None = None
        self._moves = Moves(context.store)
        self._asked = Asked(context.store, self._ledger, self._attempts, self._moves)
        self._alive = context.launcher.still_alive
        #: Jobs that waited in the store at the start: of some of them a notice is still
        #: on its way, when they may have ended already.
        self._loaded: set[str] = set()
        self._opened_at = trio.current_time()
        self._careful = context.careful(repo)

    @property
    def finished(self) -> bool:
        if self._stop is not None:
            return self._stop == "detached" or not self._ledger.leases
        due = self._lingers_until
        return self._ledger.idle and due is not None and trio.current_time() >= due

    @contextmanager
    def open(self) -> Iterator[None]:
        """While the block lasts, workers may be started. A failure undoes nothing."""
        try:
            yield
        except Exception:
            self._attempts.detach()
            raise
        else:
            if self._stop == "detached":
                self._attempts.detach()
        finally:
            self._attempts.close()
            self._save()
            self._attempts.abandon()

    def discard(self, message: Message) -> None:
        """Put back what it carries."""
        if isinstance(message, Granted):
            message.grant.give_back()
        elif isinstance(message, WorkerExited):
            self._context.keep_receipt(message.receipt)

    async def next_message(self, inbox: Inbox[Message]) -> Message | None:
        """The next message; None when a queue budget ran out or the linger is over."""
        due = self._lingers_until if self._ledger.idle else None
        deadline = self._ledger.next_deadline()
        if deadline is not None:
            due = trio.current_time() + max(0.0, deadline - self._context.clock.now())
        if due is None:
            return await inbox.receive()
        with trio.move_on_at(due):
            return await inbox.receive()
        self.settle()
        # One may have come just now: left there it would keep us awake for ever.
        return inbox.receive_nowait()

    def recover(self) -> None:
        """Take in the saved jobs; adopt what runs, decide what became of the rest."""
        context, now = self._context, self._context.clock.now()
        self._moves.add(self._ledger.told_of(context.pauses(), now))
        self._moves.add(told_of(self._ledger, context.policy(), now))
        self._moves.add(told_of(self._ledger, context.accounts(), now))
        for job in load(context, self._ledger, self._moves, careful=self._careful):
            if job.id in self._ledger.poisoned:
                if job.state in RESERVED:
                    self._leave_alone(job)
            elif self._careful:
                with self._guard(job):
                    self._recover_one(job, now)
            else:
                self._recover_one(job, now)
        self._moves.add(self._ledger.look_for_left(self._alive, now))
        self._moves.add(self._ledger.take_back(now))
        self.settle()
        self._context.settled()

    def _recover_one(self, job: Job, now: float) -> None:
        if job.state not in RESERVED:
            self._loaded.add(job.id)
            self._take_in(job, now)
            return
        self._ledger.adopt(job)
        receipt = self._context.kept_receipt(job.id, job.attempt)
        decided = receipt is not None and self._finish(job, receipt, now)
        if not decided and not self._adopt(job):
            self._finish(job, None, now)

    @contextmanager
    def _guard(self, job: Job) -> Iterator[None]:
        """Set the job aside if it makes us fail. For one that is careful."""
        reserved = job.state in RESERVED
        try:
            yield
        except Exception as error:  # noqa: BLE001 - it is told, and others go on
            now = self._context.clock.now()
            self._moves.add(self._ledger.set_aside(job.id, cause(error), now))
            if reserved:
                self._leave_alone(job)

    def _leave_alone(self, job: Job) -> None:
        """It was set aside while it ran, and keeps its claims and tokens."""
        self._ledger.keep_aside(job)
        if not self._attempts.has(job.id, job.attempt):
            self._adopt(job)

    def _adopt(self, job: Job) -> bool:
        """Own the attempt that somebody launched; False if nobody did."""
        running = self._context.launcher.adopt(job.id, job.attempt)
        if running is None:
            return False
        worker = self._context.make_worker(self._context.adopt(job), self._mailbox)
        suspended = job.id in self._ledger.suspended
        self._attempts.adopt(worker, running, job, suspended=suspended)
        return True

    def handle(self, message: Message) -> None:
        # An asker whose message makes us fail learns so.
        if isinstance(message, ASKS):
            with message.reply:
                self._handle(message)
        elif self._careful and (job := self._job_of(message)) is not None:
            with self._guard(job):
                self._handle(message)
                return
            if isinstance(message, WorkerExited):
                self._exited(message.receipt, self._context.clock.now())
        else:
            self._handle(message)

    def _job_of(self, message: Message) -> Job | None:
        """The only job that a message is about."""
        if isinstance(message, WorkerStarted | WorkerExited):
            return self._ledger.jobs.get(message.job)
        return None

    def _handle(self, message: Message) -> None:
        now = self._context.clock.now()
        match message:
            case Granted(grant):
                self._use(grant, now)
            case WorkerStarted(job, attempt, identity):
                changes = self._ledger.started(job, attempt, identity, now)
                self._moves.add(changes, lazy=True)
            case WorkerExited(_, _, receipt):
                self._exited(receipt, now)
            case Enqueue(jobs):
                for accepted in jobs:
                    self._hear_of(accepted, now)
            case DependencyEnded(job, state):
                self._moves.add(self._ledger.dependency_ended(job, state, now))
            case Cancel(jobs, grace, reply):
                self._asked.cancel(jobs, grace, reply, now)
            case Explain(jobs, reply):
                reply.answer(explain(self._ledger, jobs, now))
            case AskStopped(job, reply):
                reply.answer(self._attempts.is_stopped(job))
            case Steer(jobs, how, reply):
                self._asked.steer(jobs, how, reply, now)
            case OfWaiting():
                self._asked.of_waiting(message, now)
            case PauseHere(on, running, reply):
                self._asked.pause(on, running, reply, now)
            case LetGoOfLeft(job, reply):
                self._asked.let_go_of_left(job, reply, now)
            case PausesChanged() | AccountsChanged() | PolicyChanged():
                self._moves.add(told_of(self._ledger, message, now))
                self._attempts.suspend(self._ledger.suspended)
            case Relocated():
                self._asked.relocated(self._repo, self._context.store)
            case Withdraw(job, attempt):
                self._attempts.withdraw(job, attempt)
            case SetEnabled(enabled):
                self._ledger.enabled = enabled
            case SetLimits(limits):
                self._ledger.set_limits(limits)
            case Pass():
                if trio.current_time() >= self._opened_at + LINGER_SECONDS:
                    self._loaded.clear()
                self._fail_if_gone(now)
                self._moves.add(self._ledger.look_for_left(self._alive, now))
                self._moves.add(self._ledger.announce(now), lazy=True)
                self._told = self._told and None  # nothing wanted is no news
            case Stop(reason):
                self._stop = reason
                if reason != "detached":
                    for job in self._ledger.leases:
                        self._asked.stop(job, reason, None)

    def settle(self) -> None:
        """After a batch of messages: what has run out, what is wanted now."""
        now = self._context.clock.now()
        self._moves.add(self._ledger.expire(now))
        self._save()
        offers = () if self._stop else self._ledger.offers(now)
        self._context.rival(self._repo, self._ledger.rival())
        if offers != self._told:
            self._told = offers
            self._context.wanted(self._repo, offers)
        if not self._ledger.idle:
            self._lingers_until = None
        elif self._lingers_until is None:
            self._lingers_until = trio.current_time() + LINGER_SECONDS

    def _hear_of(self, job: Job, now: float) -> None:
        if job.id not in self._loaded and job.id not in self._ledger.jobs:
            self._take_in(job, now)

    def _take_in(self, job: Job, now: float) -> None:
        self._moves.add(self._ledger.add(job, job.after, now))
        for dependency in job.after:
            notify = partial(self._dependency_ended, dependency)
            self._context.store.when_ended(dependency, notify)

    def _dependency_ended(self, job: str, state: State) -> None:
        # If this actor has ended, the next one asks the store anew.
        told(self._mailbox, DependencyEnded(job, state))

    def _use(self, grant: Grant, now: float) -> None:
        """Dispatch the best job that fits the grant; give it back if there is none."""
        self._told = ()
        with grant:  # unless it is passed on, to a job that uses it
            if self._stop is not None or grant.withdrawn or self._fail_if_gone(now):
                return
            changes, job = self._ledger.dispatch(grant.tokens, now, ahead=grant.ahead)
            if job is None:
                return
            grant.use(job)
            worker = self._context.make_worker(grant, self._mailbox)
            try:
                order = grant.ordered(self._context.make_order(job))
            except Exception as error:
                if not self._careful:
                    raise
                # Nobody has been told of its dispatch: in the store it waits.
                self._moves.add(self._ledger.set_aside(job.id, cause(error), now))
                return
            self._attempts.add(worker, order)
            start = partial(self._attempts.start, job.id)
            self._moves.add(changes, then=start, lazy=True)
            grant.pass_on()

    def _fail_if_gone(self, now: float) -> bool:
        """If the repository's folder is gone nothing can start: end what waits."""
        if not self._ledger.enabled or not (gone := self._context.gone(self._repo)):
            return False  # of one that is disabled the folder may be on its way
        self._moves.add(self._ledger.fail_waiting("REPOSITORY_GONE", gone, now))
        return True

    def _exited(self, receipt: Receipt, now: float) -> None:
        job = self._ledger.jobs.get(receipt.job)
        if receipt.job in self._ledger.poisoned:
            # For whoever tries again; until then its claims are kept.
            self._context.keep_receipt(receipt)
            self._attempts.ended(receipt.job, receipt.attempt)
        elif job is None or job.attempt != receipt.attempt:
            self._moves.add(self._ledger.refuse(receipt, now), lazy=True)
        elif self._finish(job, receipt, now):
            self._attempts.ended(job.id, receipt.attempt)

    def _finish(self, job: Job, receipt: Receipt | None, now: float) -> bool:
        """Decide what becomes of a job whose attempt is over; False if it is not."""
        store, attempt = self._context.store, job.attempt
        lost = receipt is None or receipt.ending == "lost" or receipt.no_worktree
        refused = receipt is not None and receipt.agent is not None
        changes, outcome = self._ledger.finish(
            job.id,
            attempt,
            receipt,
            self._attempts.why_stopped(job.id),
            now,
            child=store.child_of(job.id) if job.kind == "dispatch-task" else None,
            spec=store.spec(job.id) if lost else None,
            ahead=self._context.clock.ahead() if refused else 0.0,
            attended=self._context.attended,
        )
        if outcome is None:
            self._moves.add(changes, lazy=True)
            return False
        if outcome.refusal is not None:
            # Before its tokens are free: they are to be granted to nobody.
            self._context.refused(job, outcome.refusal)
        if job.agent is not None:
            self._context.used()
        forget = partial(self._context.forget, job.id, attempt)
        self._moves.add(changes, then=forget, lazy=True)
        return True

    def _save(self) -> None:
        # The end of a job is recorded before its tokens are given to another, so that
        # the event log never shows more at once than a limit allows.
        self._moves.save()
        self._attempts.release()
        if self._attempts.waits:
            self._context.settled()
