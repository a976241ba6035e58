"""`policy`, and where its mode is shown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from forge_actors.cli.dashboard.board import Board
from forge_actors.cli.dashboard.words import head
from forge_actors.cli.policy import MODES
from forge_actors.domain import policies
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell


def test_the_modes_are_those_of_the_domain() -> None:
    assert MODES == policies.MODES


async def test_a_policy_is_set_shown_and_ended(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        assert await shell("policy", "show") == (0, "normal, revision 0\n", "")
        words = ("--until", "2100-01-02T03:04", "--reason", "new disk")
        status, out, err = await shell("policy", "set", "maintenance", *words)
        assert (status, err) == (0, "")
        assert out == (
            "maintenance, revision 1, since 2026-01-02T03:04:05.000Z,"
            " until 2100-01-02T03:04\n"
            "nothing is started during maintenance (new disk);"
            " forge-actors policy normal ends that\n"
        )
        assert "policy\n  maintenance, revision 1" in (await shell("status"))[1]
        status, _, err = await shell("policy", "narrow", "wf-1")
        assert status == 3
        assert "WORK_ADMISSION_TRANSITION_REQUIRES_CONVERGENCE" in err
        status, _, err = await shell("policy", "set", "normal", "--revision", "0")
        assert (status, "not as it was" in err) == (3, True)
        status, out, _ = await shell("policy", "normal", "--json")
        assert (status, json.loads(out)["mode"]) == (0, "normal")
        assert "policy" not in (await shell("status"))[1]
        await shell("policy", "set", "convergence")
        status, out, _ = await shell("policy", "narrow", "wf-1", "--for", "2h")
        assert (status, out.splitlines()[0].split(",")[0]) == (0, "exclusive")
        assert control.policy_now.work == "wf-1"
        status, _, err = await shell("policy", "set", "exclusive")
        assert status == 2
        assert err.startswith("forge-actors: work: is missing: exclusive is for")


def test_the_dashboard_says_it_at_the_top() -> None:
    board = Board()
    note = "nothing is started during maintenance"
    board.status = {"policy": {"mode": "maintenance", "note": note}}
    [line] = [text for text in head(board, 200, None) if "policy" in text]
    assert line.endswith(f"policy maintenance: {note}")
    board.status = {"policy": {"mode": "normal", "note": ""}}
    assert not any("policy" in text for text in head(board, 200, None))
