"""What the steps of a workflow hand on to each other: values and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import convert
from forge_actors.domain.workflow_views import WorkflowRequest
from tests.runtime.control_kit import controlled

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "ghp_" + "a1B2" * 9
SCRIPT = f"""mkdir d; echo made > d/out; echo other > no
printf 'VERSION=1.2\\nTOKEN={TOKEN}\\nX=1' > "$FORGE_OUTPUT"
"""
BUILD = {
    "argv": ["sh", "-c", SCRIPT],
    "outputs": ["VERSION", "TOKEN"],
    "artifacts": ["d", "no"],
}
USE = {
    "argv": [
        "sh",
        "-c",
        'cd "$FORGE_INPUTS" && find . -type f | xargs tail -n +1; echo "$@"',
        *("use", "${build.VERSION}", "${build.TOKEN}"),
    ]
}


def workflow(*steps: dict[str, Any]) -> WorkflowRequest:
    return convert({"name": "w", "repo": "app", "steps": list(steps)}, WorkflowRequest)


async def test_a_step_gets_what_an_earlier_one_has_handed_on(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        build = {"name": "build", "job": BUILD}
        use = {"name": "use", "job": USE, "inputs": ["build:d"]}
        made = await case.control.run_workflow(workflow(build, use))
        view = await case.control.wait_workflow(made.id)
        assert view.state == "succeeded"
        first, second = view.steps
        assert second.after == ("build",)
        # As it is for the next step, but not for those who look.
        assert first.outputs["VERSION"] == "1.2"
        assert TOKEN not in first.outputs["TOKEN"]
        assert first.why == "of its outputs: X was not declared"
        assert second.job is not None
        log = await case.control.read_log(second.job, "stdout", 0, limit=1000)
        assert log.data.decode() == f"made\n1.2 {TOKEN}\n"
        job = await case.control.job(second.job)
        assert job.inputs == [f"{first.job}:d"]


async def test_a_value_that_was_not_written_fails_the_step_that_needs_it(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        build = {"name": "build", "job": {"argv": ["true"], "outputs": ["A"]}}
        use = {"name": "use", "job": {"argv": ["${build.A}"]}, "after": ["build"]}
        made = await case.control.run_workflow(workflow(build, use))
        view = await case.control.wait_workflow(made.id)
        first, second = view.steps
        assert (first.state, first.why) == ("succeeded", "of its outputs: A is missing")
        assert (second.state, second.job) == ("failed", None)
        assert second.why is not None
        assert "step 'build' has no output 'A'" in second.why


async def test_what_no_step_hands_on_is_refused_at_once(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        build: dict[str, Any] = {"name": "build", "job": {"argv": ["true"]}}
        use = {"name": "use", "job": {"argv": ["true"]}, "inputs": ["build"]}
        gate = {"name": "use", "gate": "well?", "inputs": ["build"]}
        own = {"name": "use", "job": {"argv": ["true"], "inputs": ["build"]}}
        keeps = {"name": "build", "job": BUILD}
        after = {"name": "use", "after": ["build"]}
        missing = {**after, "job": {"argv": ["echo", "${build.NO}"]}}
        unknown = {**after, "job": {"argv": ["true"]}, "if": 'build.NO == ""'}
        none = "step 'build' declares no output 'NO'"
        wrong = [
            (build, use, "[1].inputs: the job of step 'build' keeps no artifacts"),
            (keeps, gate, "[1].inputs: are for a step with a job"),
            (keeps, own, "[1].job.inputs: cannot be given to a job of a workflow"),
            (keeps, missing, f"[1].job: {none}"),
            (keeps, unknown, f"[1].if: {none}"),
        ]
        for first, second, said in wrong:
            with pytest.raises(InvalidInput) as found:
                await case.control.run_workflow(workflow(first, second))
            assert str(found.value) == f"step{said}"
