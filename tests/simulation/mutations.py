"""Deliberate bugs: each puts one into the product, as a wrong edit would.

Every one takes pytest's monkeypatch, which takes the bug out again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.actors import asked, moves, repository
from forge_actors.actors.attempts import Attempts
from forge_actors.actors.tokens import Grant, Grants
from forge_actors.domain import job_queue, lanes, ledger, priority, recovery, steering
from forge_actors.domain.accounts import Accounts
from forge_actors.domain.capacity import Capacity
from forge_actors.domain.changes import JobApproved
from forge_actors.domain.jobs import Job, JobError
from forge_actors.domain.looking import Look
from forge_actors.domain.recovery import Outcome
from forge_actors.edges.node.agent.desk import Desk
from forge_actors.runtime.admission import Admission, Place
from forge_actors.runtime.registry import Registry
from forge_actors.testing.rows import Rows as MemoryRows
from forge_actors.testing.simulation.store import SimulatedStore

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    Mutation = Callable[[pytest.MonkeyPatch], None]


def the_fence_begins_anew_with_each_ledger(patch: pytest.MonkeyPatch) -> None:
    real = job_queue.JobQueue.__init__

    def init(self: Any, repo: str, **settings: Any) -> None:
        real(self, repo, **{**settings, "fence": 0})

    patch.setattr(job_queue.JobQueue, "__init__", init)


def a_dispatch_gets_the_fence_of_the_last_one(patch: pytest.MonkeyPatch) -> None:
    real = ledger.Ledger.dispatch

    def dispatch(self: Any, *args: Any, **how: Any) -> Any:
        changes, job = real(self, *args, **how)
        if job is not None and self.fence > 1:
            self.fence -= 1
        return changes, job

    patch.setattr(ledger.Ledger, "dispatch", dispatch)


def the_agent_serves_an_older_runtime(patch: pytest.MonkeyPatch) -> None:
    real = Desk.greet

    def greet(self: Any, hello: Any) -> Any:
        self._epoch = -1
        return real(self, hello)

    patch.setattr(Desk, "greet", greet)


def the_store_takes_what_an_older_runtime_saves(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedStore, "_check", lambda *_: None)


def a_cancelled_job_ends_before_its_processes(patch: pytest.MonkeyPatch) -> None:
    def cancel(self: Any, job_id: str, now: float) -> Any:
        error = JobError("CANCELLED", "it was cancelled")
        return self._end(self.jobs[job_id], "cancelled", error, now), False

    patch.setattr(ledger.Ledger, "cancel", cancel)


def an_interrupted_job_is_queued_whatever_its_policy(
    patch: pytest.MonkeyPatch,
) -> None:
    def again(_job: Any, _known: Any, code: str, why: str, _: Any) -> Outcome:
        return Outcome("queued", JobError(code, why))

    patch.setattr(recovery, "_interrupted", again)


def a_receipt_is_forgotten_before_its_outcome_is_saved(
    patch: pytest.MonkeyPatch,
) -> None:
    real = repository._Repository._finish

    def finish(self: Any, job: Any, *rest: Any) -> Any:
        self._context.forget(job.id, job.attempt)
        return real(self, job, *rest)

    patch.setattr(repository._Repository, "_finish", finish)


def a_submit_is_answered_before_it_is_saved(patch: pytest.MonkeyPatch) -> None:
    async def submit(self: Any, requests: Any) -> Any:
        places = []
        for request in requests:
            repo, _ = await self._registry.find(request.repo)
            places.append(Place("", repo, repo.path))
        return (await self._accept(requests, places, None))[0]

    patch.setattr(Admission, "submit", submit)


def a_process_starts_before_its_dispatch_is_saved(patch: pytest.MonkeyPatch) -> None:
    real = moves.Moves.save

    def save(self: Any) -> None:
        thens, self._thens = self._thens, []
        real(self)
        for then in thens:
            then()

    patch.setattr(moves.Moves, "save", save)


def an_ask_is_answered_before_it_is_saved(patch: pytest.MonkeyPatch) -> None:
    def when_durable(self: Any, changes: Any, reply: Any, answer: Any) -> None:
        self._moves.add(changes)
        reply.answer(answer)

    patch.setattr(asked.Asked, "_when_durable", when_durable)


def a_token_is_not_counted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Capacity, "used", lambda *_: 0)


def a_token_is_counted_twice(patch: pytest.MonkeyPatch) -> None:
    real = Grants.issue

    def issue(self: Any, offer: Any) -> Any:
        real(self, offer)
        return real(self, offer)

    patch.setattr(Grants, "issue", issue)


def a_grant_is_lost(patch: pytest.MonkeyPatch) -> None:
    real = Grant.give_back

    def give_back(self: Any) -> None:
        if not self.id.endswith("7"):
            real(self)

    patch.setattr(Grant, "give_back", give_back)


def an_adopted_job_takes_its_tokens_twice(patch: pytest.MonkeyPatch) -> None:
    real = Grants.adopt

    def adopt(self: Any, offer: Any) -> Any:
        self.issue(offer)
        return real(self, offer)

    patch.setattr(Grants, "adopt", adopt)


def what_runs_is_not_adopted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(repository._Repository, "_adopt", lambda *_: False)


def waiting_raises_no_job(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(priority, "effective", lambda level, *_: level)


def nothing_is_reserved_for_who_waits_too_long(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lanes.Lanes, "reservations", lambda *_: ())


def a_paused_repository_starts_jobs(patch: pytest.MonkeyPatch) -> None:
    def may_start(self: Any) -> bool:
        return bool(self.enabled) and len(self.leases) < self.workers

    patch.setattr(job_queue.JobQueue, "_may_start", may_start)


def a_held_job_stays_in_its_lane(patch: pytest.MonkeyPatch) -> None:
    real = steering.Steerable._hold

    def hold(self: Any, job: Any, now: float) -> Any:
        changes = real(self, job, now)
        if job.held_at is not None and job.id not in self._unmet:
            self._lanes.enter(job)
        return changes

    patch.setattr(steering.Steerable, "_hold", hold)


def an_order_that_comes_again_starts_again(patch: pytest.MonkeyPatch) -> None:
    real = Desk._start

    def start(self: Any, key: Any, message: Any) -> None:
        self.jobs.pop(key, None)
        self._receipts.pop(key, None)
        real(self, key, message)

    patch.setattr(Desk, "_start", start)


def nobody_remembers_why_a_job_was_stopped(patch: pytest.MonkeyPatch) -> None:
    real = Attempts.stop

    def stop(self: Any, job: str, attempt: int, _reason: Any, grace: Any) -> None:
        real(self, job, attempt, "shutdown", grace)

    patch.setattr(Attempts, "stop", stop)


def claims_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lanes, "find_blocker", lambda *_: None)


def a_failed_job_lets_those_after_it_run(patch: pytest.MonkeyPatch) -> None:
    real = ledger.Ledger.dependency_ended

    def ended(self: Any, dependency: str, _state: Any, now: float) -> Any:
        return real(self, dependency, "succeeded", now)

    patch.setattr(ledger.Ledger, "dependency_ended", ended)


def a_repository_with_jobs_can_be_removed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Registry, "_active", lambda *_: 0)


def a_request_that_comes_again_makes_another_job(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Admission, "_existing", lambda *_: None)


def lower_limits_are_not_heard_of(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Capacity, "set_limits", lambda *_: None)


def the_best_job_is_not_offered(patch: pytest.MonkeyPatch) -> None:
    real = ledger.Ledger.offers

    def offers(self: Any, now: float) -> Any:
        return real(self, now)[1:]

    patch.setattr(ledger.Ledger, "offers", offers)


def claims_are_free_though_something_may_run(patch: pytest.MonkeyPatch) -> None:
    held = property(lambda self: self.leases)
    patch.setattr(job_queue.JobQueue, "held", held)


def what_was_left_is_forgotten_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    real = job_queue.JobQueue.__init__

    def init(self: Any, repo: str, **settings: Any) -> None:
        real(self, repo, **{**settings, "quarantined": ()})

    patch.setattr(job_queue.JobQueue, "__init__", init)


def what_was_left_is_taken_for_gone(patch: pytest.MonkeyPatch) -> None:
    real = ledger.Ledger.look_for_left

    def look(self: Any, _alive: Any, now: float) -> Any:
        return real(self, lambda _: (), now)

    patch.setattr(ledger.Ledger, "look_for_left", look)


def a_lost_job_is_over_whatever_is_left_of_it(patch: pytest.MonkeyPatch) -> None:
    def keep_nothing(*_: Any) -> list[Any]:
        return []

    patch.setattr(ledger.Ledger, "_quarantine", keep_nothing)


def an_actor_does_not_hear_that_its_repository_moved(
    patch: pytest.MonkeyPatch,
) -> None:
    patch.setattr(ledger.Ledger, "relocated", lambda *_: None)


def a_sample_answers_marks_that_came_later(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Look, "_unanswered", lambda *_: None)


def marks_do_not_outlive_a_crash(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedStore, "unfinished_looks", lambda _: [])


def all_return_at_once(patch: pytest.MonkeyPatch) -> None:
    real = Accounts.granted

    def granted(self: Any, tokens: Any, grant: str, now: float, _gap: float) -> bool:
        return real(self, tokens, grant, now, 0.0)

    patch.setattr(Accounts, "granted", granted)


def a_closed_account_is_never_opened(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Accounts, "pass_time", lambda *_: ([], False))
    patch.setattr(Accounts, "next_moment", lambda *_: None)


def a_refused_attempt_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Job, "counted", property(lambda self: self.attempt))


def any_number_of_jobs_try_a_closed_account(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Accounts, "closed_tokens", lambda *_: frozenset())


def a_closed_account_is_forgotten_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    real = Accounts.__init__

    def init(self: Any, _known: Any = (), now: float = 0.0) -> None:
        real(self, (), now)

    patch.setattr(Accounts, "__init__", init)


def what_nobody_allowed_starts(patch: pytest.MonkeyPatch) -> None:
    real = job_queue.JobQueue._enter

    def enter(self: Any, job: Any, now: float) -> None:
        if job_queue.awaits_approval(job):
            job.state = "queued"
        real(self, job, now)

    patch.setattr(job_queue.JobQueue, "_enter", enter)


def an_approval_is_forgotten_at_a_crash(patch: pytest.MonkeyPatch) -> None:
    real = MemoryRows.apply

    def apply(self: Any, change: Any) -> None:
        if not isinstance(change, JobApproved):
            real(self, change)
            return
        spec = self.specs[change.job]
        real(self, change)
        self.specs[change.job] = spec

    patch.setattr(MemoryRows, "apply", apply)


#: Those that the store refuses: the actor that asks for it fails, time and again.
REFUSED: tuple[Mutation, ...] = (the_fence_begins_anew_with_each_ledger,)

MUTATIONS: tuple[Mutation, ...] = (
    an_actor_does_not_hear_that_its_repository_moved,
    the_fence_begins_anew_with_each_ledger,
    a_dispatch_gets_the_fence_of_the_last_one,
    the_agent_serves_an_older_runtime,
    the_store_takes_what_an_older_runtime_saves,
    a_cancelled_job_ends_before_its_processes,
    an_interrupted_job_is_queued_whatever_its_policy,
    a_receipt_is_forgotten_before_its_outcome_is_saved,
    a_submit_is_answered_before_it_is_saved,
    a_process_starts_before_its_dispatch_is_saved,
    an_ask_is_answered_before_it_is_saved,
    a_token_is_not_counted,
    a_token_is_counted_twice,
    a_grant_is_lost,
    an_adopted_job_takes_its_tokens_twice,
    what_runs_is_not_adopted,
    waiting_raises_no_job,
    nothing_is_reserved_for_who_waits_too_long,
    a_paused_repository_starts_jobs,
    a_held_job_stays_in_its_lane,
    an_order_that_comes_again_starts_again,
    nobody_remembers_why_a_job_was_stopped,
    claims_are_not_looked_at,
    a_failed_job_lets_those_after_it_run,
    a_repository_with_jobs_can_be_removed,
    a_request_that_comes_again_makes_another_job,
    lower_limits_are_not_heard_of,
    the_best_job_is_not_offered,
    claims_are_free_though_something_may_run,
    what_was_left_is_forgotten_at_a_restart,
    what_was_left_is_taken_for_gone,
    a_lost_job_is_over_whatever_is_left_of_it,
    a_sample_answers_marks_that_came_later,
    marks_do_not_outlive_a_crash,
    all_return_at_once,
    a_closed_account_is_never_opened,
    a_refused_attempt_counts,
    any_number_of_jobs_try_a_closed_account,
    a_closed_account_is_forgotten_at_a_restart,
    what_nobody_allowed_starts,
    an_approval_is_forgotten_at_a_crash,
)
