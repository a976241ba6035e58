"""Asked: what people ask of the jobs of one repository, answered once it is durable."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from forge_actors.actors.repository_messages import AnswerJob, ApproveJob, EditJob
from forge_actors.domain.errors import Outdated, Refused
from forge_actors.domain.jobs import RESERVED

if TYPE_CHECKING:
    from forge_actors.actors.attempts import Attempts
    from forge_actors.actors.mailbox import Reply
    from forge_actors.actors.moves import Moves
    from forge_actors.domain.changes import Change
    from forge_actors.domain.effects import Approval
    from forge_actors.domain.ledger import Ledger
    from forge_actors.domain.ports import Store
    from forge_actors.domain.recovery import StopReason
    from forge_actors.domain.steering import Steering

A = TypeVar("A")


class Asked:
    """A part of its repository's actor, whose task alone calls it."""

    def __init__(
        self, store: Store, ledger: Ledger, attempts: Attempts, moves: Moves
    ) -> None:
        self._store = store
        self._ledger = ledger
        self._attempts = attempts
        self._moves = moves

    def cancel(
        self,
        jobs: tuple[str, ...],
        grace: float | None,
        reply: Reply[list[str]],
        now: float,
    ) -> None:
        ends: list[Change] = []
        running = []
        if len(jobs) == 1 and jobs[0] in self._ledger.poisoned:
            reply.refuse(Refused(self._unfit(jobs[0])))
            return
        for job in jobs:
            if job not in self._ledger.jobs:
                continue  # it ended meanwhile, or was set aside
            changes, runs = self._ledger.cancel(job, now)
            if not runs:
                ends += changes
                continue
            running.append(job)
            self.stop(job, "cancelled", grace)
            # A stop lets a paused tree go on, so that it can act on it.
            self._moves.add(self._ledger.steer(job, "resume", now)[0])
        self._when_durable(ends, reply, running)

    def steer(
        self,
        jobs: tuple[str, ...],
        how: Steering,
        reply: Reply[dict[str, str]],
        now: float,
    ) -> None:
        moves: list[Change] = []
        problems: dict[str, str] = {}
        for job in jobs:
            problem = self._unfit(job)
            if problem is None and how == "pause":
                problem = self._moves_on(job)
            if problem is None:
                changes, problem = self._ledger.steer(job, how, now)
                moves += changes
            if problem is not None:
                problems[job] = problem
        self._steered(moves, reply, problems)

    def of_waiting(self, message: EditJob | AnswerJob | ApproveJob, now: float) -> None:
        """What is asked of one job that waits."""
        match message:
            case EditJob(job, _, reply, unchanged) if unchanged is not None:
                # What was handled just before is not saved yet.
                self._moves.save()
                if unchanged():
                    self._edit(message, now)
                else:
                    reply.refuse(Outdated(f"job {job}"))
            case EditJob():
                self._edit(message, now)
            case AnswerJob(job, answer, reason, reply):
                self._answer(job, answer, reason, reply, now)
            case ApproveJob(job, approval, reply):
                self._approve(job, approval, reply, now)

    def _edit(self, message: EditJob, now: float) -> None:
        job, reply = message.job, message.reply
        changes: list[Change] = []
        problem = self._unfit(job)
        if problem is None:
            changes, problem = self._ledger.edit(job, message.edit, now)
        if problem is not None:
            reply.refuse(Refused(problem))
            return
        self._steered(changes, reply, None)

    def _answer(
        self, job: str, answer: str | None, reason: str, reply: Reply[None], now: float
    ) -> None:
        changes: list[Change] = []
        problem = self._unfit(job)
        if problem is None and answer is None:
            changes, problem = self._ledger.deny(job, reason, now)
        elif problem is None and answer is not None:
            changes, problem = self._ledger.answer(job, answer, reason, now)
        if problem is not None:
            reply.refuse(Refused(problem))
            return
        self._when_durable(changes, reply, None)

    def _approve(
        self, job: str, approval: Approval, reply: Reply[None], now: float
    ) -> None:
        changes: list[Change] = []
        problem = self._unfit(job)
        if problem is None:
            changes, problem = self._ledger.approve(job, approval, now)
        if problem is not None:
            reply.refuse(Refused(problem))
            return
        self._when_durable(changes, reply, None)

    def _unfit(self, job: str) -> str | None:
        """Why nobody can steer the job any more."""
        if job in self._ledger.poisoned:
            return f"job {job} was set aside, see: forge-actors why {job}"
        if job not in self._ledger.jobs:
            return f"job {job} has ended"
        if self._attempts.is_stopped(job):
            return f"job {job} is being stopped"
        return None

    def _moves_on(self, job: str) -> str | None:
        """Why one that runs cannot stand still."""
        runs = self._ledger.jobs[job].state in RESERVED
        if not runs or self._store.spec(job).admission is None:
            return None
        return (
            f"job {job} runs until it ends by itself, and cannot be paused; to have it"
            f" ended: forge-actors cancel {job}"
        )

    def _steered(self, changes: list[Change], reply: Reply[A], answer: A) -> None:
        self._attempts.suspend(self._ledger.suspended)
        self._when_durable(changes, reply, answer)

    def _when_durable(self, changes: list[Change], reply: Reply[A], answer: A) -> None:
        if changes:
            self._moves.add(changes, then=partial(reply.answer, answer))
        else:
            reply.answer(answer)

    def pause(self, on: bool, jobs: bool, reply: Reply[None], now: float) -> None:
        if on:
            self._attempts.withdraw_all()
        move = self._ledger.pause if on else self._ledger.resume
        self._steered(move(now, jobs=jobs), reply, None)

    def let_go_of_left(self, job: str, reply: Reply[bool], now: float) -> None:
        changes = self._ledger.let_go_of_left(job, now)
        self._when_durable(changes, reply, bool(changes))

    def relocated(self, repo: str, store: Store) -> None:
        """What the jobs claim is other folders now; nobody asked, but it was saved."""
        self._ledger.relocated(store.claims(repo))

    def stop(self, job: str, reason: StopReason, grace: float | None) -> None:
        attempt = self._ledger.jobs[job].attempt
        self._attempts.stop(job, attempt, reason, grace)
