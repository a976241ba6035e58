"""What each agent program can come to, and what is made of it."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from forge_actors.domain.agent_verdicts import fault
from forge_actors.testing.agents import NAMES
from forge_actors.testing.agents.acting import GRANDCHILD, LONG
from tests.edges.agents_kit import FakeStage

if TYPE_CHECKING:
    from pathlib import Path

every_agent = pytest.mark.parametrize("name", NAMES)


@every_agent
@pytest.mark.parametrize(
    ("scene", "code"),
    [
        ("limit", "USAGE_LIMIT"),
        ("rate", "USAGE_LIMIT"),
        ("overload", "USAGE_LIMIT"),
        ("auth", "PROVIDER_AUTH"),
        ("budget", "BUDGET_SPENT"),
        ("error", "EXIT_NONZERO"),
        ("error_exit_0", "AGENT_FAILED"),
        ("empty", "EMPTY_RESULT"),
        ("failed_silently", "EXIT_NONZERO"),
        ("no_end", "INTERRUPTED"),
        ("partial", "INTERRUPTED"),
    ],
)
async def test_no_failure_counts_as_success_and_each_has_its_reason(
    name: str, scene: str, code: str, tmp_path: Path
) -> None:
    stage = FakeStage(tmp_path, name)
    stage.fake.play(scene)
    ran = await stage.run()
    assert not ran.good
    assert fault(ran.receipt, ran.report).code == code


@every_agent
@pytest.mark.parametrize("scene", ["success", "acts", "noise", "long_line"])
async def test_whatever_else_is_printed_a_good_end_is_found(
    name: str, scene: str, tmp_path: Path
) -> None:
    stage = FakeStage(tmp_path, name)
    stage.fake.play(scene)
    ran = await stage.run()
    assert ran.good
    assert ran.report.text == "done"
    assert ran.report.acted is (
        scene == "acts" or (name, scene) == ("codex", "long_line")
    )
    assert ran.report.unread == 0
    if scene == "long_line":
        assert len(ran.stdout) > LONG


@pytest.mark.parametrize("name", ["claude", "codex"])
async def test_the_end_of_a_limit_is_told_in_the_zone_of_the_program(
    name: str, tmp_path: Path
) -> None:
    stage = FakeStage(tmp_path, name)
    stage.env["TZ"] = "Asia/Kathmandu"
    reset = (int(time.time()) // 60 + 90) * 60
    stage.fake.play("limit", reset=reset)
    ran = await stage.run("old text")
    assert ran.report.limit is not None
    assert ran.report.limit.kind == "usage"
    assert ran.report.limit.retry_at == reset


async def test_the_event_of_a_limit_goes_before_its_words(tmp_path: Path) -> None:
    stage = FakeStage(tmp_path, "claude")
    reset = int(time.time()) + 4711
    stage.fake.play("limit", reset=reset)
    ran = await stage.run()
    assert ran.report.limit is not None
    assert ran.report.limit.retry_at == reset


async def test_a_spent_budget_does_not_hide_what_it_cost(tmp_path: Path) -> None:
    stage = FakeStage(tmp_path, "claude")
    stage.fake.play("budget")
    ran = await stage.run()
    assert ran.report.usage is not None
    assert ran.report.usage.cost
    assert ran.report.usage.output_tokens == 7


async def test_an_end_that_came_after_the_stop_proves_nothing(tmp_path: Path) -> None:
    stage = FakeStage(tmp_path, "copilot")
    stage.fake.play("works")
    async with stage.running("Go.") as ran:
        await stage.at_work(ran)
        ran.stop(signal.SIGTERM)
    assert ran.report.ok, "it says so"
    assert not ran.report.in_time
    assert not ran.good


@every_agent
async def test_one_that_stays_after_its_end_is_ended_and_good(
    name: str, tmp_path: Path
) -> None:
    stage = FakeStage(tmp_path, name)
    stage.fake.play("stays")
    async with stage.running("Go.") as ran:
        await ran.printed({"codex": b"turn.completed"}.get(name, b'"type":"result"'))
        await ran.printed(b"}\n")
        ran.stop(signal.SIGTERM)
    assert ran.status != 0
    assert ran.good


async def test_an_interrupted_claude_exits_0_and_is_not_good(tmp_path: Path) -> None:
    stage = FakeStage(tmp_path, "claude")
    stage.fake.play("works")
    async with stage.running("Go.") as ran:
        await stage.at_work(ran)
        ran.stop(signal.SIGINT)
    assert ran.status == 0
    assert not ran.good


@every_agent
async def test_what_an_agent_leaves_behind_is_not_waited_for(
    name: str, tmp_path: Path
) -> None:
    stage = FakeStage(tmp_path, name)
    stage.fake.play("grandchild")
    ran = await stage.run()
    # It may remember one of an earlier test that had the same number.
    psutil.process_iter.cache_clear()
    left = [
        process
        for process in psutil.process_iter(["cmdline", "cwd"])
        if process.info["cmdline"] == list(GRANDCHILD)
        and process.info["cwd"] == str(tmp_path)
    ]
    for process in left:
        process.kill()
    assert ran.good
    assert left
