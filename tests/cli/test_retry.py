"""`retry` in front of a service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.cli.shell import Shell


async def test_a_retry_prints_one_new_id_a_line(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        jobs = [await shell.submit() for _ in range(2)]
        for job in jobs:
            control.end(job, "failed", exit_code=1)
        status, out, err = await shell("retry", *jobs)
        assert (status, err) == (0, "")
        assert [control.views[new].retry_of for new in out.split()] == jobs
        made = json.loads((await shell("retry", jobs[0][-4:], "--json"))[1])
        assert made["retry_of"] == jobs[0]
        assert isinstance(json.loads((await shell("retry", *jobs, "--json"))[1]), list)


async def test_selectors_retry_what_failed_and_was_not_retried(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        failed, good, gone = [await shell.submit() for _ in range(3)]
        running = await shell.submit()
        control.end(failed, "failed", exit_code=1)
        control.end(good)
        control.end(gone, "cancelled", exit_code=None)
        status, out, _ = await shell("retry", "--mine")
        assert (status, control.views[out.strip()].retry_of) == (0, failed)
        assert await shell("retry", "--failed") == (
            3,
            "",
            "forge-actors: no job that was not retried yet matches --failed\n",
        )
        status, out, _ = await shell("retry", "--state", "cancelled")
        assert (status, control.views[out.strip()].retry_of) == (0, gone)
        status, out, err = await shell("retry", running)
        assert (status, out) == (3, "")
        assert "has not ended" in err


async def test_a_retry_belongs_to_the_caller(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_service(tmp_path) as control:
        job = await shell.submit()
        control.end(job)
        monkeypatch.setenv("FORGE_JOB_ID", "j9")
        _, out, _ = await shell("retry", job)
        assert control.views[out.strip()].origin == "job:j9"
