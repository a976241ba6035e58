"""Workflows as large as they may be, and what is refused of them."""

from __future__ import annotations

import math
import tracemalloc

import pytest

from forge_actors.domain.campaigns import name_of
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.workflow_definitions import (
    MAX_NAME,
    Ancestors,
    Definition,
    StepDefinition,
)
from forge_actors.domain.workflow_steps import StepEnd
from forge_actors.domain.workflow_tables import workflow_from
from forge_actors.domain.workflows import Graph

JOB = JobRequest(repo="app", argv=["true", "${version}"])
BAD = StepEnd("failed", "exit status 1")


def test_what_runs_before_the_steps_of_a_long_chain_takes_little_room() -> None:
    steps = tuple(
        StepDefinition(f"s{n}", request=JOB, after=(f"s{n - 1}",) if n else ())
        for n in reversed(range(2000))
    )
    tracemalloc.start()
    try:
        before = Ancestors(Definition("release", "portfolio", steps))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 << 20
    assert before.has("s1999", "s0")
    assert before.has("s1", "s0")
    assert not before.has("s0", "s0")
    assert not before.has("s0", "s1")
    assert not before.has("s1", "version")


class Counted(set[str]):
    looks = 0

    def __contains__(self, name: object) -> bool:
        self.looks += 1
        return super().__contains__(name)


@pytest.mark.parametrize("prefix", ["ü", "long" * 40])
def test_items_that_come_to_the_same_name_are_numbered_at_once(prefix: str) -> None:
    taken, numbers, names = Counted(), dict[str, int](), []
    for number in range(1000):
        names.append(
            name_of(f"{prefix}{number % 7 if number % 2 else ''}é", taken, numbers)
        )
        taken.add(names[-1])
    assert len(taken) == 1000
    assert max(map(len, names)) <= MAX_NAME
    assert taken.looks < 4000


def test_a_retry_by_which_nothing_would_begin_is_refused() -> None:
    steps = [StepDefinition(name, request=JOB) for name in ("a", "b", "c")]
    steps.append(StepDefinition("tell", request=JOB, after=("a",), when="failed"))
    plan = Graph(Definition("w", "portfolio", tuple(steps), on_failure="stop"))
    plan.begin(0.0)
    for _ in range(3):
        step = plan.take()
        assert step is not None
        plan.submitted(step, f"job-{step.name}", 1.0)
    for name in ("a", "b", "c"):
        plan.ended(plan.by_name[name], BAD, 2.0)
    step = plan.take()
    assert step is not None
    plan.submitted(step, "job-tell", 3.0)
    plan.ended(step, BAD, 4.0)
    with pytest.raises(Refused, match="b, c, tell; name them as well"):
        plan.retry(["a"])


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_no_json_has_is_refused_by_its_file(number: float) -> None:
    steps = [{"name": "a", "gate": "Go on?", "retries": number}]
    with pytest.raises(InvalidInput, match="a number that is none"):
        workflow_from({"step": steps}, "release", str)
