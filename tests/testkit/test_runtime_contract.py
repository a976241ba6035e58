"""The runtime in memory and the real one keep the same contract."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors import open_runtime
from forge_actors.testing import InMemory, ScriptedJob, make_repository
from forge_actors.testing.runtime_contract import CHECKS
from tests.runtime import kit

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.testing.runtime_contract import Check


async def play(job: ScriptedJob) -> int:
    match job.argv[0]:
        case "echo":
            job.print(" ".join(job.argv[1:]))
        case "sleep":
            await trio.sleep(float(job.argv[1]))
        case "false":
            return 1
    return 0


@pytest.mark.mock_clock
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_the_runtime_in_memory_keeps_it(check: Check, tmp_path: Path) -> None:
    memory = InMemory(tmp_path / "home", play)
    memory.missing.add("/no/such/program")
    async with memory.open() as runtime:
        await check(runtime, make_repository(tmp_path / "app"))


async def test_the_real_runtime_keeps_it(tmp_path: Path) -> None:
    """All of it in one, as a start of it takes longer than any of the checks."""
    repo = kit.make_repository(tmp_path / "app")
    async with open_runtime(settings=kit.CALM) as runtime:
        for check in CHECKS:
            await check(runtime, repo)
