"""A job whose agent program is not there is not in line, and keeps nobody else back."""

from __future__ import annotations

from forge_actors.domain.jobs import Job
from forge_actors.domain.ledger import Ledger

WORKERS = ("workers",)


class Machine:
    """Says which programs are missing."""

    def __init__(self, *missing: str) -> None:
        self.missing = set(missing)

    def problem(self, agent: str) -> str | None:
        return f"{agent} is not there" if agent in self.missing else None


def ledger(machine: Machine) -> Ledger:
    return Ledger("repo", workers=4, agent_problem=machine.problem)


def job(name: str, agent: str | None = None, **fields: object) -> Job:
    options = {"queue_budget": None, **fields}
    return Job(
        id=name,
        repo="repo",
        kind="agent-run",
        priority=2,
        claims=(),
        tokens=WORKERS,
        queued_at=0.0,
        agent=agent,
        **options,  # type: ignore[arg-type]
    )


def startable(queue: Ledger) -> list[str]:
    return [offer.job for offer in queue.offers(9.0)]


def test_it_waits_for_its_program_and_others_go_by() -> None:
    machine = Machine("codex")
    queue = ledger(machine)
    queue.add(job("first", "codex"), (), 1.0)
    queue.add(job("second", "claude"), (), 2.0)
    assert startable(queue) == ["second"]
    waiting = queue.waiting("first", 5.0)
    assert (waiting.kind, waiting.detail) == ("agent", "codex is not there")
    assert (waiting.since, waiting.resource) == (1.0, "codex")
    assert queue.state_of("first", waiting) == "queued"
    queue.announce(6.0)
    assert startable(queue) == ["second"]
    machine.missing.clear()
    queue.announce(7.0)
    assert startable(queue) == ["first"]
    assert queue.waiting("first", 8.0).kind == "token"


def test_a_program_that_went_away_while_a_job_was_ready_is_seen_at_its_start() -> None:
    machine = Machine()
    queue = ledger(machine)
    for name, agent in (("first", "codex"), ("second", "codex"), ("third", "claude")):
        queue.add(job(name, agent), (), 1.0)
    assert startable(queue) == ["first"]
    machine.missing.add("codex")
    _, started = queue.dispatch(WORKERS, 2.0)
    assert started is not None
    assert started.id == "third"
    assert queue.waiting("first", 3.0).kind == "agent"
    assert queue.dispatch(WORKERS, 3.0) == ([], None)
    machine.missing.clear()
    queue.announce(4.0)
    assert startable(queue) == ["first"]


def test_its_queue_budget_stands_still_meanwhile() -> None:
    machine = Machine("codex")
    queue = ledger(machine)
    queue.add(job("slow", "codex", queue_budget=10.0), (), 0.0)
    assert queue.expire(1000.0) == []
    machine.missing.clear()
    queue.announce(1000.0)
    assert queue.expire(1009.0) == []
    [ended] = queue.expire(1011.0)
    assert ended.event.kind == "job_timed_out"


def test_it_can_be_held_let_go_and_cancelled_while_it_waits() -> None:
    machine = Machine("codex")
    queue = ledger(machine)
    queue.add(job("one", "codex"), (), 0.0)
    queue.steer("one", "hold", 1.0)
    assert queue.waiting("one", 2.0).kind == "pause"
    machine.missing.clear()
    queue.announce(3.0)
    assert startable(queue) == [], "it is held"
    machine.missing.add("codex")
    queue.steer("one", "unhold", 4.0)
    assert queue.waiting("one", 5.0).kind == "agent"
    changes, runs = queue.cancel("one", 6.0)
    assert (len(changes), runs, queue.idle) == (1, False, True)
    queue.announce(7.0)
    assert startable(queue) == []


def test_what_runs_after_another_looks_for_its_program_then() -> None:
    machine = Machine("codex")
    queue = ledger(machine)
    queue.add(job("late", "codex", state="waiting_for_dependency"), ("before",), 0.0)
    assert queue.waiting("late", 1.0).kind == "dependency"
    queue.dependency_ended("before", "succeeded", 2.0)
    assert queue.waiting("late", 3.0).kind == "agent"
