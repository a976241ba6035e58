"""Campaigns of real jobs: over repositories, files and what a command says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import convert
from forge_actors.domain.workflow_views import WorkflowRequest
from tests.runtime.control_kit import controlled

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATE = {"repo": "${item}", "job": {"argv": ["test", "-e", "good"]}}


def campaign(items: dict[str, Any], **fields: Any) -> WorkflowRequest:
    wanted = {"name": "c", "kind": "campaign", "items": items, "template": TEMPLATE}
    return convert({**wanted, **fields}, WorkflowRequest)


async def test_a_canary_that_fails_keeps_the_others_from_beginning(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        for number in range(4):
            await case.add(f"site{number}")
            if number:
                (tmp_path / f"site{number}" / "good").touch()
        request = campaign({"repositories": ["site*"]}, canary=1)
        made = await case.control.run_workflow(request)
        assert [step.name for step in made.steps] == [f"site{n}" for n in range(4)]
        view = await case.control.wait_workflow(made.id)
        assert [step.state for step in view.steps] == ["failed", *["skipped"] * 3]
        (tmp_path / "site0" / "good").touch()
        await case.control.retry_workflow("c")
        view = await case.control.wait_workflow(made.id)
        assert view.state == "succeeded"
        assert view.counts == {"succeeded": 4}


async def test_items_are_files_or_the_lines_of_a_command(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        for name in ("one", "two"):
            (tmp_path / "app" / name).mkdir()
            (tmp_path / "app" / name / "mark").touch()
        there = {"repo": "app", "job": {"argv": ["test", "-e", "${item}"]}}
        files = {"files": {"repo": "app", "glob": "*/mark"}}
        made = await case.control.run_workflow(campaign(files, template=there))
        assert [step.name for step in made.steps] == ["one-mark", "two-mark"]
        view = await case.control.wait_workflow(made.id)
        assert view.state == "succeeded"
        command = {"repo": "app", "argv": ["sh", "-c", "ls; echo nowhere"]}
        request = campaign({"command": command}, template=there, stop_after=1)
        made = await case.control.run_workflow(request)
        view = await case.control.wait_workflow(made.id)
        told = {step.name: step.state for step in view.steps}
        assert told["one"] == told["two"] == "succeeded"
        assert told["nowhere"] == "failed"
        command = {"repo": "app", "argv": ["head", "-c", "1048577", "/dev/zero"]}
        request = campaign({"command": command}, template=there)
        made = await case.control.run_workflow(request)
        [items] = (await case.control.wait_workflow(made.id)).steps
        assert items.why == "it printed more than 1 MiB"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"items": {}}, "items"),
        ({"items": {"list": ["a"], "repositories": ["*"]}}, "items"),
        ({"items": {"list": ["nowhere"]}}, "items[0].repo"),
        ({"items": {"repositories": ["no*"]}}, "items.repositories"),
        ({"items": {"files": {"repo": "app", "glob": "../*"}}}, "items.files.glob"),
        ({"items": {"command": {"repo": "no", "argv": ["ls"]}}}, "items.command.repo"),
        ({"canary": 101}, "canary"),
        ({"stop_after": 0}, "stop_after"),
        ({"steps": [{"name": "a", "gate": "?"}]}, "step"),
        ({"template": {"job": {"argv": ["true"]}}}, "template.repo"),
        ({"template": {"repo": "app", "job": {"argv": ["${x}"]}}}, "template.job"),
        (
            {"template": {"repo": "app", "job": {"argv": ["x"], "cwd": "no"}}},
            "template.job.cwd",
        ),
    ],
)
async def test_a_campaign_that_cannot_be_is_refused_whole(
    tmp_path: Path, fields: dict[str, Any], field: str
) -> None:
    async with controlled(tmp_path) as case:
        with pytest.raises(InvalidInput) as refused:
            await case.control.run_workflow(
                campaign(**{"items": {"list": ["app"]}, **fields})
            )
        assert refused.value.field == field
        assert await case.control.workflows() == []
