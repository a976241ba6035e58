"""Campaigns: a step for each item, canaries first, and no more after some failures."""

from __future__ import annotations

from typing import Any

import msgspec

from forge_actors.domain.campaigns import ITEMS, Campaign, expanded, usable
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.workflow_definitions import Definition, StepDefinition
from forge_actors.domain.workflow_requests import request_of
from forge_actors.domain.workflow_steps import Step, StepEnd

GOOD, BAD = StepEnd("succeeded"), StepEnd("failed")
TEMPLATE = StepDefinition("item", request=JobRequest(repo="${item}", argv=["lint"]))
FINDS = StepDefinition(
    ITEMS, request=JobRequest(repo="app", argv=["ls"]), gives_items=True
)


def campaign(*items: str, **fields: Any) -> Campaign:
    definition = Definition(
        "lint", "campaign", items=items, template=TEMPLATE, **fields
    )
    plan = Campaign(definition)
    plan.begin(0.0)
    return plan


def take_all(plan: Campaign) -> list[str]:
    taken = []
    while (one := plan.take()) is not None:
        plan.submitted(one, f"job-{one.name}", 1.0)
        taken.append(one.name)
    return taken


def end(plan: Campaign, name: str, how: StepEnd = GOOD) -> None:
    plan.ended(plan.by_name[name], how, 2.0)


def test_each_item_stands_in_the_job_of_its_step() -> None:
    plan = campaign("a/b c", "a-b-c", "//")
    assert take_all(plan) == ["a-b-c", "a-b-c-2", "item"]
    made = request_of(plan.define("a-b-c"), {}, plan.by_name)
    assert made.repo == "a/b c"


def test_the_canaries_go_first() -> None:
    plan = campaign("a", "b", "c", "d", canary=2, parallel=2)
    assert take_all(plan) == ["a", "b"]
    end(plan, "a")
    assert take_all(plan) == []
    end(plan, "b")
    assert take_all(plan) == ["c", "d"]


def test_a_canary_that_fails_ends_it_whatever_is_said_of_failures() -> None:
    plan = campaign("a", "b", "c", canary=1, on_failure="continue")
    assert take_all(plan) == ["a"]
    end(plan, "a", BAD)
    assert [step.state for step in plan.steps] == ["failed", "skipped", "skipped"]
    assert plan.verdict is not None
    assert plan.verdict.why == "1 of 3 failed: a"
    plan.retry([])
    plan.begin(3.0)
    assert take_all(plan) == ["a"]
    end(plan, "a")
    assert take_all(plan) == ["b", "c"]


def test_nothing_new_begins_after_so_many_failures() -> None:
    plan = campaign("a", "b", "c", "d", parallel=2, stop_after=2)
    take_all(plan)
    end(plan, "a", BAD)
    assert take_all(plan) == ["c"]
    end(plan, "b", BAD)
    assert plan.by_name["d"].state == "skipped"
    assert plan.by_name["c"].state == "running"


def test_a_step_may_find_out_what_it_is_about() -> None:
    plan = campaign(steps=(FINDS,), canary=1)
    assert take_all(plan) == [ITEMS]
    end(plan, ITEMS, StepEnd("succeeded", items=("b", " ", "a", "b", "c")))
    assert take_all(plan) == ["b"]
    assert len(plan.steps) == 4
    saved = [
        msgspec.json.decode(msgspec.json.encode(step), type=Step) for step in plan.steps
    ]
    definition = Definition("lint", "campaign", steps=(FINDS,), template=TEMPLATE)
    again = Campaign(definition, saved)
    again.begin(3.0)
    assert [step.name for step in again.steps] == [ITEMS, "b", "a", "c"]
    assert take_all(again) == ["a", "c"]


def test_finding_nothing_is_a_failure() -> None:
    plan = campaign(steps=(FINDS,))
    take_all(plan)
    end(plan, ITEMS, StepEnd("succeeded", items=("", "  ")))
    assert plan.verdict is not None
    assert plan.verdict.state == "failed"
    assert "nothing" in str(plan.by_name[ITEMS].why)
    assert plan.by_name[ITEMS].ended == 2.0
    plan.retry([])
    plan.begin(3.0)
    take_all(plan)
    end(plan, ITEMS, StepEnd("succeeded", "it printed too much"))
    assert plan.by_name[ITEMS].why == "it printed too much"


def test_what_is_found_after_a_cancel_begins_nothing() -> None:
    plan = campaign(steps=(FINDS,))
    take_all(plan)
    plan.cancel(1.0)
    end(plan, ITEMS, StepEnd("succeeded", items=("a",)))
    assert take_all(plan) == []
    assert plan.verdict is not None
    # Nothing that it is about was done, so it can be taken up again.
    assert plan.verdict.state == "cancelled"
    assert [step.name for step in plan.retry([])] == [ITEMS]


def test_names_of_steps_are_short_and_each_once() -> None:
    items = ["x" * 100, "x" * 101, "y"]
    definition = Definition("lint", "campaign", template=TEMPLATE)
    names = [step.name for step in expanded(definition, items).steps]
    assert len(set(names)) == 3
    assert max(map(len, names)) == 64


def test_items_are_lines_with_something_in_them() -> None:
    assert usable([" a ", "", "a", "b\t", "x" * 5000]) == ("a", "b")
