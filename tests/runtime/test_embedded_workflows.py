"""Workflows in a program that runs everything itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import forge_actors
from tests.runtime.kit import make_repository

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_program_begins_workflows_and_waits_for_them(tmp_path: Path) -> None:
    home, app = tmp_path / "home", make_repository(tmp_path / "app")
    steps = [
        {"name": "test", "job": {"argv": ["test", "-e", "good"]}},
        {"name": "ask", "after": ["test"], "gate": "Go on?"},
    ]
    async with forge_actors.open_runtime(home) as runtime:
        await runtime.add_repository(app)
        release = await runtime.run_workflow("release", repo="app", steps=steps)
        assert (await release.show()).origin == "embedded"
        assert (await release.wait()).state == "failed"
        (app / "good").touch()
        await release.retry("test")
        async for event in runtime.events(after=0):
            if event.kind == "workflow_asks":
                break
        assert (await release.pause()).state == "paused"
        with pytest.raises(forge_actors.InvalidInput, match="step"):
            await runtime.run_workflow("other", repo="app", steps=[])
        with pytest.raises(forge_actors.InvalidInput, match="no name of a workflow"):
            await runtime.run_workflow("<b>", repo="app", steps=steps)
    async with forge_actors.open_runtime(home) as runtime:
        release = forge_actors.WorkflowHandle(runtime.control, release.id)
        assert (await release.show()).state == "paused"
        await release.resume()
        await release.answer("ask", yes=True)
        assert (await release.wait()).state == "succeeded"
