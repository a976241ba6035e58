"""What comes next in a workflow, and what an end means for the steps behind it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.workflow_definitions import (
    Definition,
    StepDefinition,
    check_graph,
    condition_of,
    digest_of,
)
from forge_actors.domain.workflow_steps import ENDED, Step, StepEnd
from forge_actors.domain.workflows import Graph

JOB = JobRequest(repo="app", argv=["true"])
GOOD, BAD = StepEnd("succeeded"), StepEnd("failed", "exit status 1")


def step(name: str, *after: str, **fields: Any) -> StepDefinition:
    wanted = {"request": JOB, **fields}
    return StepDefinition(name, after=after, **wanted)


def graph(*steps: StepDefinition, **fields: Any) -> Graph:
    return Graph(Definition("release", "portfolio", steps, **fields))


def begun(*steps: StepDefinition, **fields: Any) -> Graph:
    plan = graph(*steps, **fields)
    plan.begin(0.0)
    return plan


def take_all(plan: Graph) -> list[str]:
    """Give every step a job that may have one now; their names."""
    taken = []
    while (one := plan.take()) is not None:
        plan.submitted(one, f"job-{one.name}-{one.tries + 1}", 1.0)
        taken.append(one.name)
    return taken


def end(plan: Graph, name: str, how: StepEnd = GOOD) -> list[str]:
    """The job of a step ends; the names of the steps that changed."""
    [one] = [s for s in plan.steps if s.name == name]
    return [changed.name for changed in plan.ended(one, how, 2.0)]


def states(plan: Graph) -> dict[str, str]:
    return {one.name: one.state for one in plan.steps}


def test_a_step_begins_when_all_before_it_are_good() -> None:
    plan = begun(step("a"), step("b"), step("c", "a", "b"))
    assert take_all(plan) == ["a", "b"]
    end(plan, "b")
    assert take_all(plan) == []
    end(plan, "a")
    assert take_all(plan) == ["c"]
    assert plan.verdict is None
    assert end(plan, "c") == ["c"]
    assert plan.verdict is not None
    assert plan.verdict.state == "succeeded"


def test_a_failure_leaves_out_what_depends_on_it_and_nothing_else() -> None:
    plan = begun(step("a"), step("b", "a"), step("c", "b"), step("d"))
    take_all(plan)
    assert set(end(plan, "a", BAD)) == {"a", "b", "c"}
    assert states(plan) == {
        "a": "failed",
        "b": "skipped",
        "c": "skipped",
        "d": "running",
    }
    assert [one.why for one in plan.steps[1:3]] == [
        "step a failed",
        "step b was left out",
    ]
    end(plan, "d")
    assert plan.verdict is not None
    assert plan.verdict.state == "failed"
    assert plan.verdict.why == "1 of 4 failed: a"


def test_stop_begins_nothing_new_and_lets_go_on_what_runs() -> None:
    plan = begun(
        step("a"),
        step("b"),
        step("c", "b"),
        step("tidy", "a", "b", when="ended"),
        on_failure="stop",
    )
    take_all(plan)
    end(plan, "a", BAD)
    assert states(plan)["c"] == "skipped"
    assert states(plan)["b"] == "running"
    end(plan, "b")
    assert take_all(plan) == ["tidy"]


def test_continue_goes_on_behind_what_failed() -> None:
    plan = begun(step("a"), step("b", "a"), on_failure="continue")
    take_all(plan)
    end(plan, "a", BAD)
    assert take_all(plan) == ["b"]
    end(plan, "b")
    assert plan.verdict is not None
    assert plan.verdict.state == "failed"


@pytest.mark.parametrize(
    ("how", "begins"), [(GOOD, ["always"]), (BAD, ["on-failure", "always"])]
)
def test_a_step_may_be_there_for_a_failure_or_for_any_end(
    how: StepEnd, begins: list[str]
) -> None:
    plan = begun(
        step("a"),
        step("on-failure", "a", when="failed"),
        step("always", "a", when="ended"),
    )
    take_all(plan)
    end(plan, "a", how)
    assert take_all(plan) == begins


def test_a_condition_looks_at_an_output() -> None:
    plan = begun(
        step("a"),
        step("yes", "a", condition=condition_of('a.changed == "1"', field="if")),
        step("no", "a", condition=condition_of("a.changed != '1'", field="if")),
        step("unset", "a", condition=condition_of('a.other == ""', field="if")),
    )
    take_all(plan)
    end(plan, "a", StepEnd("succeeded", outputs={"changed": "1"}))
    assert take_all(plan) == ["yes", "unset"]
    assert plan.steps[2].why == 'it is not so that a.changed != "1"'


def test_a_failed_step_is_tried_again_as_often_as_it_may() -> None:
    plan = begun(step("a", retries=2))
    for number in (1, 2, 3):
        assert take_all(plan) == ["a"]
        assert plan.steps[0].tries == number
        end(plan, "a", BAD)
    assert take_all(plan) == []
    assert states(plan) == {"a": "failed"}


def test_a_job_that_somebody_cancelled_is_not_tried_again() -> None:
    plan = begun(step("a", retries=2))
    take_all(plan)
    end(plan, "a", StepEnd("cancelled"))
    assert states(plan) == {"a": "failed"}


def test_a_gate_asks_before_its_step_begins() -> None:
    plan = begun(step("a"), step("b", "a", gate="Go?"), step("c", "b"))
    take_all(plan)
    end(plan, "a")
    assert take_all(plan) == []
    assert states(plan)["b"] == "asking"
    with pytest.raises(Refused, match="it is waiting"):
        plan.answer("c", yes=True, now=3.0)
    with pytest.raises(NotFound):
        plan.answer("d", yes=True, now=3.0)
    plan.answer("b", yes=True, now=3.0)
    assert take_all(plan) == ["b"]


@pytest.mark.parametrize(
    ("yes", "state", "behind"),
    [(True, "succeeded", "waiting"), (False, "failed", "skipped")],
)
def test_a_gate_may_be_all_there_is_of_a_step(
    *, yes: bool, state: str, behind: str
) -> None:
    plan = begun(step("ask", gate="Go?", request=None), step("b", "ask"))
    plan.answer("ask", yes=yes, now=3.0)
    assert states(plan) == {"ask": state, "b": behind}


def test_so_many_run_at_once_as_is_said() -> None:
    plan = begun(*(step(f"s{n}") for n in range(5)), parallel=2)
    assert take_all(plan) == ["s0", "s1"]
    end(plan, "s1", BAD)
    assert take_all(plan) == ["s2"]


def test_what_was_taken_counts_until_it_is_given_back() -> None:
    plan = begun(step("a"), step("b"), parallel=1)
    taken = plan.take()
    assert taken is not None
    assert plan.take() is None
    plan.give_back(taken, 1.0)
    assert take_all(plan) == ["a"]


def test_a_step_whose_job_cannot_be_is_a_failed_one() -> None:
    plan = begun(step("a"), step("b", "a"))
    taken = plan.take()
    assert taken is not None
    plan.refused(taken, "there is no such repository", 1.0)
    assert states(plan) == {"a": "failed", "b": "skipped"}


def test_cancel_ends_what_waits_and_follows_what_runs() -> None:
    plan = begun(
        step("a", retries=5), step("b", "a"), step("gate", gate="?"), step("c")
    )
    one = plan.take()
    assert one is not None
    plan.submitted(one, "job", 1.0)
    taken = plan.take()
    assert taken is not None
    plan.cancel(2.0)
    assert states(plan) == {
        "a": "running",
        "b": "cancelled",
        "gate": "cancelled",
        "c": "waiting",
    }
    plan.give_back(taken, 2.0)
    assert plan.verdict is None
    end(plan, "a", StepEnd("cancelled"))
    assert plan.verdict is not None
    assert plan.verdict.state == "cancelled"


def test_what_is_behind_a_stop_waits_for_a_step_that_was_taken() -> None:
    plan = begun(step("a"), step("b"), on_failure="stop")
    first = plan.take()
    second = plan.take()
    assert first is not None
    assert second is not None
    plan.refused(first, "no", 1.0)
    assert plan.verdict is None
    plan.give_back(second, 1.0)
    assert states(plan) == {"a": "failed", "b": "skipped"}


def test_retry_begins_what_failed_and_what_was_left_out_anew() -> None:
    plan = begun(step("a"), step("b", "a"), step("c"), step("d", "c"))
    take_all(plan)
    end(plan, "a", BAD)
    end(plan, "c")
    take_all(plan)
    end(plan, "d", BAD)
    with pytest.raises(Refused, match="did not fail"):
        plan.retry(["c"])
    assert {one.name for one in plan.retry(["a"])} == {"a", "b"}
    plan.begin(5.0)
    assert take_all(plan) == ["a"]
    assert plan.steps[0].tries == 2
    end(plan, "a")
    take_all(plan)
    end(plan, "b")
    assert plan.verdict is not None
    assert plan.verdict.why == "1 of 4 failed: d"
    plan.retry([])
    plan.begin(6.0)
    assert take_all(plan) == ["d"]


def test_retry_of_nothing_that_failed_is_refused() -> None:
    plan = begun(step("a"))
    take_all(plan)
    end(plan, "a")
    with pytest.raises(Refused, match="no step of it failed"):
        plan.retry([])


@pytest.mark.parametrize(
    ("steps", "field", "problem"),
    [
        ([], "step", "from 1 to"),
        ([step("a"), step("a")], "step[1].name", "twice"),
        ([step("a", "b")], "step[0].after", "is no step"),
        ([step("a", "a")], "step[0].after", "circle: a -> a"),
        (
            [step("x"), step("a", "x", "c"), step("b", "a"), step("c", "b")],
            "step[",
            "circle: ",
        ),
        ([step("a b")], "step[0].name", "no name of a step"),
    ],
)
def test_a_graph_that_cannot_be_walked_is_refused(
    steps: list[StepDefinition], field: str, problem: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_graph(Definition("x", "portfolio", tuple(steps)))
    assert refused.value.field.startswith(field)
    assert problem in refused.value.problem


def test_a_circle_is_told_in_the_order_in_which_it_would_run() -> None:
    steps = (step("x"), step("a", "x", "c"), step("b", "a"), step("c", "b"))
    with pytest.raises(InvalidInput, match="a -> b -> c -> a"):
        check_graph(Definition("x", "portfolio", steps))


def test_a_digest_is_of_what_is_done_and_not_of_where_it_was_written() -> None:
    one = Definition("x", "portfolio", (step("a"),), source="/a.toml")
    assert digest_of(one) == digest_of(msgspec.structs.replace(one, source="/b.toml"))
    assert digest_of(one) != digest_of(msgspec.structs.replace(one, parallel=3))


@pytest.mark.parametrize(
    "text", ["a", "a.b = 'c'", "a.b == c", "a.b == 'c", "a == 'c'"]
)
def test_a_condition_has_one_form(text: str) -> None:
    with pytest.raises(InvalidInput, match="has not the form"):
        condition_of(text, field="step[0].if")


@st.composite
def definitions(draw: st.DrawFn) -> Definition:
    count = draw(st.integers(1, 7))
    steps = []
    for number in range(count):
        before = [f"s{n}" for n in range(number)]
        after = draw(st.lists(st.sampled_from(before), unique=True)) if before else []
        steps.append(
            step(
                f"s{number}",
                *after,
                when=draw(st.sampled_from(("succeeded", "failed", "ended"))),
                retries=draw(st.integers(0, 1)),
                gate=draw(st.sampled_from((None, None, "Go?"))),
            )
        )
    return Definition(
        "x",
        "portfolio",
        tuple(steps),
        on_failure=draw(st.sampled_from(("stop", "skip", "continue"))),
        parallel=draw(st.sampled_from((None, 1, 2))),
    )


@settings(max_examples=150, deadline=None)
@given(definitions(), st.data())
def test_every_graph_comes_to_an_end_wherever_it_is_taken_up_again(
    definition: Definition, data: st.DataObject
) -> None:
    """Whatever ends how and in which order, and however often the actor is started
    anew from what was saved: the same steps begin, once for each try, and in the end
    each step has ended."""
    plan = Graph(definition)
    saved: dict[str, Step] = {}
    jobs: list[str] = []

    def keep(changed: list[Step]) -> None:
        for one in changed:
            saved[one.name] = msgspec.convert(msgspec.to_builtins(one), Step)

    keep(plan.begin(0.0))
    for _ in range(200):
        if plan.verdict is not None:
            break
        if data.draw(st.booleans(), "crash"):
            plan = Graph(definition, list(saved.values()))
            keep(plan.begin(0.0))
        while (one := plan.take()) is not None:
            jobs.append(f"{one.name}/{one.tries + 1}")
            keep(plan.submitted(one, jobs[-1], 1.0))
        for asked in [one for one in plan.steps if one.state == "asking"]:
            keep(plan.answer(asked.name, yes=data.draw(st.booleans()), now=1.0))
        running = [one for one in plan.steps if one.state == "running"]
        if definition.parallel is not None:
            assert len(running) <= definition.parallel
        if running:
            one = data.draw(st.sampled_from(running), "ends")
            keep(plan.ended(one, data.draw(st.sampled_from((GOOD, BAD))), 2.0))
    assert plan.verdict is not None
    assert all(one.state in ENDED for one in plan.steps)
    assert len(jobs) == len(set(jobs))
    for one in plan.steps:
        before = [s for s in plan.steps if s.name in plan.define(one.name).after]
        if one.tries and plan.define(one.name).when == "succeeded":
            fine = {"succeeded"}
            if definition.on_failure == "continue":
                fine.add("failed")
            assert all(other.state in fine for other in before)
        if one.tries and plan.define(one.name).when == "failed":
            assert any(other.state == "failed" for other in before)
