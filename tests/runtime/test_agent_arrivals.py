"""A program that jobs wait for is seen as soon as it is installed."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.actors import supervisor
from forge_actors.edges.agents.arrivals import watching
from forge_actors.testing.agents import install
from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
)
from tests.runtime.kit import open_files, running

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No agent is there, and no safety pass will find one."""
    folders = [os.path.dirname(shutil.which(name) or "") for name in ("git", "sh")]
    bins = tmp_path / "bin"
    bins.mkdir()
    for name in ("git", "sh", "env", "python3"):
        if (path := shutil.which(name)) is not None:
            (bins / name).symlink_to(path)
    assert all(folders)
    monkeypatch.setenv("PATH", str(bins))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(supervisor, "BUSY_PASS_SECONDS", 1e6)
    monkeypatch.setattr(supervisor, "IDLE_PASS_SECONDS", 1e6)


@pytest.mark.parametrize("folder", ["bin", ".local/bin"])
async def test_a_job_starts_when_its_program_is_installed(
    folder: str, repo: Path, home: Path, tmp_path: Path
) -> None:
    async with running(home) as runtime:
        jobs = [
            await runtime.submit(repo, [], agent=name, prompt="Go.")
            for name in ("claude", "codex")
        ]
        for job in jobs:
            waiting = (await job.show()).waiting
            assert waiting is not None
            assert waiting["kind"] == "agent"
        # Of the folders above the last one only the home is there.
        for job, name in zip(jobs, ("claude", "codex"), strict=True):
            install(tmp_path / folder, name)
            assert (await job.wait()).state == "succeeded"


async def test_only_files_of_these_names_are_waited_for(tmp_path: Path) -> None:
    before = open_files()
    wanted = tmp_path / "a" / "b" / "program"
    with watching([str(wanted)]) as arrivals, trio.fail_after(30):
        (tmp_path / "other").mkdir()
        (tmp_path / "a").mkdir()
        await arrivals.wait()
    with watching([str(wanted)]) as arrivals:
        (tmp_path / "a" / "c").mkdir()
        with trio.move_on_after(0) as scope:
            await arrivals.wait()
        assert scope.cancelled_caught
    wanted.parent.mkdir()
    with watching([str(wanted)]) as arrivals, trio.fail_after(30):
        wanted.with_name("new").write_text("")
        wanted.with_name("new").rename(wanted)
        await arrivals.wait()
    with watching([str(wanted)]) as arrivals, trio.fail_after(30):
        wanted.chmod(0o755)
        await arrivals.wait()
    assert open_files() == before
