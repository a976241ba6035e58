"""`controller`, and schedules that wake one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, get_args

from forge_actors.cli.controller import DISPOSITIONS
from forge_actors.domain.controllers import Disposition
from forge_actors.runtime.homes import ACTIVATIONS
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.cli.shell import Shell


def test_the_dispositions_are_those_of_the_domain() -> None:
    assert get_args(Disposition) == DISPOSITIONS


async def test_a_controller_is_added_shown_and_told(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_service(tmp_path) as control:
        add = ("controller", "add", "fixer")
        status, _, err = await shell(*add, "--prompt", "Go on.")
        assert (status, "which session?" in err) == (2, True)
        words = ("--prompt", "Go on.", "--binding", "{")
        status, _, err = await shell(*add, "--job", "1abc", *words)
        assert (status, "binding: is no JSON" in err) == (2, True)
        words = ("--job", "1abc", "--prompt", "Go on.\nAnd on.", "--rounds", "3")
        assert await shell(*add, *words) == (0, "fixer\n", "")
        status, out, _ = await shell("controller", "list")
        assert (status, out.split()[6:10]) == (0, ["fixer", "app", "active", "0/8"])
        assert (await shell("controller", "pause", "fixer"))[1] == "fixer paused\n"
        assert (await shell("controller", "resume", "fixer"))[1] == "fixer active\n"
        status, out, _ = await shell("controller", "wake", "fixer", "--request-id", "r")
        assert (status, out) == (0, "d\n")
        # Within its job it needs no name.
        monkeypatch.setenv("FORGE_JOB_ID", "1abc")
        monkeypatch.setenv("FORGE_CONTROLLER_HOME", str(tmp_path))
        status, out, _ = await shell("controller", "tell", "wait", "--note", "tests")
        assert (status, out) == (0, "fixer wait\n")
        status, _, err = await shell("controller", "wake", "fixer")
        assert (status, "a person can" in err) == (3, True)
        monkeypatch.delenv("FORGE_JOB_ID")
        status, out, _ = await shell("controller", "show", "fixer")
        assert status == 0
        for line in (
            "session of  job 1abc",
            "turn        since 2026-01-02T03:04:05.000Z, wait: tests",
            "asked       Go on.",
        ):
            assert line in out.splitlines()
        assert "somebody asked for it" in out
        assert control.kept_controllers["fixer"].prompt == "Go on.\nAnd on."
        assert (await shell("controller", "remove", "fixer"))[1] == "fixer\n"


async def test_a_schedule_wakes_one_in_place_of_a_command(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        await shell("repo", "add", ".")
        add = ("schedule", "add", "s", "--repo", "app", "--manual", "--wake", "fixer")
        status, _, err = await shell(*add, "--", "true")
        assert (status, "or has a command" in err) == (2, True)
        assert (await shell(*add))[:2] == (0, "s\n")
        definition = control.kept_schedules["s"].definition
        assert (definition["wake"], definition["job"]) == ("fixer", {})
        assert (await shell("schedule", "edit", "s", "--no-shadow"))[0] == 0
        assert control.kept_schedules["s"].definition["job"] == {}
        out = (await shell("schedule", "show", "s"))[1]
        assert "wakes     controller fixer" in out.splitlines()
        status, _, _ = await shell("schedule", "edit", "s", "--", "make")
        definition = control.kept_schedules["s"].definition
        assert (status, definition["job"]["argv"]) == (0, ["make"])
        assert definition.get("wake") is None
        status, out, _ = await shell("schedule", "activate", "s")
        [left] = (tmp_path / ACTIVATIONS).iterdir()
        assert (status, out) == (0, f"{left}\n")
        assert json.loads(left.read_text()) == {"schedule": "s"}
        assert left.stat().st_mode & 0o777 == 0o600
