"""The job of a step: its places filled, its files from others, one for each try."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.workflow_definitions import StepDefinition
from forge_actors.domain.workflow_requests import request_id, request_of
from forge_actors.domain.workflow_steps import Step


def defined(**fields: Any) -> StepDefinition:
    wanted: dict[str, Any] = {"repo": "app", "argv": ["true"]}
    wanted |= fields.pop("job", {})
    return StepDefinition("test", request=JobRequest(**wanted), **fields)


def ended(name: str, job: str | None = None, **outputs: str) -> Step:
    return Step(name, 1, "succeeded", job=job, outputs=outputs)


def test_each_try_of_each_step_of_each_workflow_has_an_id_of_its_own() -> None:
    own = request_id("w1", "build", 1)
    assert own == request_id("w1", "build", 1)
    others = {
        request_id("w2", "build", 1),
        request_id("w1", "test", 1),
        request_id("w1", "build", 2),
        request_id("w1b", "uild", 1),
    }
    assert len(others | {own}) == 5
    assert own.startswith("wf-")
    assert len(own) == 27


def test_places_are_parameters_values_of_the_step_or_outputs() -> None:
    step = defined(
        job={"argv": ["go", "${where}", "${item}", "${build.version}", "${a.b.c}"]},
        values={"item": "one", "shared": "mine"},
    )
    steps = {
        "build": ended("build", version="1.2"),
        "a": ended("a", **{"b.c": "deep"}),
    }
    made = request_of(step, {"where": "here", "item": "never"}, steps)
    assert made.argv == ["go", "here", "one", "1.2", "deep"]


def test_it_is_named_by_its_step_unless_it_has_a_name() -> None:
    assert request_of(defined(), {}, {}).name == "test"
    named = defined(job={"name": "check ${n}"})
    assert request_of(named, {"n": "1"}, {}).name == "check 1"


@pytest.mark.parametrize("steps", [{}, {"build": ended("build", other="1")}])
def test_an_output_that_is_not_there_is_named(steps: dict[str, Step]) -> None:
    step = defined(job={"argv": ["${build.version}"]})
    with pytest.raises(InvalidInput, match=r"'build' has no output 'version'") as error:
        request_of(step, {}, steps)
    assert error.value.field == "job"
    assert "'build.version'" in str(error.value)


def test_files_come_from_the_jobs_of_other_steps() -> None:
    step = defined(inputs=(("build", "dist/**"), ("lint", "")))
    steps = {"build": ended("build", "j1"), "lint": ended("lint", "j2")}
    assert request_of(step, {}, steps).inputs == ["j1:dist/**", "j2"]
    assert request_of(defined(), {}, steps).inputs == []
    for fewer in (
        {"build": steps["build"]},
        {**steps, "lint": structs.replace(steps["lint"], job=None)},
    ):
        with pytest.raises(InvalidInput, match="'lint' had no job") as error:
            request_of(step, {}, fewer)
        assert error.value.field == "inputs"
