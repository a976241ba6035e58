"""What must hold at the moment in which a job is dispatched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.capacity import ACTIVE_REPOSITORIES
from forge_actors.domain.claims import first_conflict
from forge_actors.domain.scopes import repository_of
from forge_actors.testing.simulation.policies import forbids

if TYPE_CHECKING:
    from forge_actors.domain.changes import JobDispatched
    from forge_actors.testing.simulation.books import Case
    from forge_actors.testing.simulation.world import World


#: The states of those that wait for a person, or for a moment of their own.
NOT_IN_LINE = ("waiting_for_approval", "waiting_for_retry", "waiting_for_limit")


class Dispatches:
    """Judges each dispatch by the books, as they were just before it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._books = world.books

    def judge(self, case: Case, change: JobDispatched) -> None:
        fail = self._world.fail
        if change.fence <= self._books.fences.get(change.repo, 0):
            fail("fences grow", f"{case.job} has {change.fence} again")
        if change.attempt != case.attempt + 1:
            fail("attempts are counted", f"{case.job}: {change.attempt}")
        if case.held:
            fail("held means held", f"{case.job} is dispatched")
        if case.repo in self._books.removed:
            fail("removed means removed", f"{case.job} is dispatched")
        known = case.known_at <= self._world.now
        if known and change.event.data["claims"] != case.claims:
            fail("what is held is told", f"{case.job} with other claims than saved")
        if tuple(change.event.data["tokens"]) != case.tokens:  # type: ignore[arg-type]
            fail("what is held is told", f"{case.job} with other tokens than it needs")
        if not self._books.met(case):
            fail("after means after", f"{case.job} before {case.after}")
        if forbids(self._books.policy, case):
            fail("policies hold", f"{case.job} is dispatched")
        self._judge_pauses(case)
        self._judge_leases(case)
        self._judge_repositories(case)
        if change.event.kind == "job_dispatched":
            self.judge_tokens(case)
        self._judge_order(case, change.at)

    def _judge_pauses(self, case: Case) -> None:
        for pause in self._books.pauses.values():
            here = repository_of(pause.scope) in (None, case.repo)
            if here and pause.covers(case.tokens):
                self._world.fail("paused means paused", f"{case.job} in {pause.scope}")

    def _judge_leases(self, case: Case) -> None:
        for other in self._books.others(case):
            if other.keeps and first_conflict(case.claims, other.claims):
                pair = f"{case.job} and {other.job}"
                self._world.fail("leases never conflict", pair)
        quarantined = self._books.quarantined.get(case.repo, {})
        for job, claims in quarantined.items():
            if first_conflict(case.claims, claims):
                self._world.fail("quarantined leases hold", f"{case.job} and {job}")

    def is_blocked(self, case: Case) -> bool:
        """Whether another job has, or may keep, what it claims."""
        kept = self._books.quarantined.get(case.repo, {}).values()
        others = [other.claims for other in self._books.others(case)]
        return any(first_conflict(case.claims, held) for held in (*others, *kept))

    def judge_tokens(self, case: Case) -> None:
        """It takes its tokens."""
        limits, fail = self._world.limits, self._world.fail
        if self._world.now < self._world.limits_known_at:
            return  # a grant may be on its way that was given by other ones
        held = [each for each in self._holding() if not each.ahead]
        for token in case.tokens:
            used = sum(token in each.tokens for each in held if each is not case)
            before = case.limits.get(token, 0) if case.ahead else 0
            if used + 1 > max(limits.tokens.get(token, 0), before):
                fail("limits hold", f"{case.job} makes {used + 1} {token}")

    def _holding(self) -> list[Case]:
        books, runs = self._books, self._world.machine.processes
        return [
            each
            for each in books.open_cases
            if each.reserved
            and (each.repo not in books.failed or (each.job, each.attempt) in runs)
        ]

    def _judge_repositories(self, case: Case) -> None:
        limits, fail = self._world.limits, self._world.fail
        if self._world.now < self._world.limits_known_at:
            return
        held = self._holding()
        repos = len({case.repo, *(each.repo for each in held)})
        if repos > limits.active_repositories:
            fail("limits hold", f"{case.job} makes {repos} {ACTIVE_REPOSITORIES}")
        here = 1 + sum(each.repo == case.repo for each in held)
        if here > self._world.repository_workers:
            fail("limits hold", f"{case.job} makes {here} in {case.repo}")

    def _judge_order(self, case: Case, at: float) -> None:
        """None that comes first, was known and could have started, is passed over."""
        mine = case.rank(at)
        others = self._books.others(case)
        running = [other for other in others if other.keeps]
        for other in others:
            if (
                not other.waiting
                or other.state in NOT_IN_LINE
                or other.held
                or forbids(self._books.policy, other)
                or other.known_at > self._world.now
                or other.rank(at) >= mine
                or not self._books.met(other)
            ):
                continue
            alike = other.claims == case.claims and other.tokens == case.tokens
            if case.step == "check":
                continue  # what it has kept for that is in the way of others only
            if alike:
                self._world.fail("order", f"{case.job} before {other.job}")
            if (
                at - other.queued_at > self._world.limits.overtake_after
                and self._is_open(other)
                and not other.isolatable
                and first_conflict(case.claims, other.claims)
                and any(first_conflict(other.claims, r.claims) for r in running)
                and self._is_first(other, others, at)
            ):
                pair = f"{case.job} takes what is reserved for {other.job}"
                self._world.fail("no wait is endless", pair)

    def _is_first(self, case: Case, others: list[Case], at: float) -> bool:
        """Whether none of those that need the same tokens comes before it: nothing is
        kept free for one that is not next."""
        mine = case.rank(at)
        return not any(
            other.waiting
            and other.state not in NOT_IN_LINE
            and not forbids(self._books.policy, other)
            and other.tokens == case.tokens
            and other.rank(at) < mine
            for other in others
        )

    def _is_open(self, case: Case) -> bool:
        """Whether tokens of its kind are granted at all."""
        known = self._world.limits.tokens
        if self._world.referee.accounts.closed(case.tokens):
            return False
        return all(token in known for token in case.tokens) and not any(
            pause.covers(case.tokens) for pause in self._books.pauses.values()
        )
