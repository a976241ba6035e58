"""Artifacts of jobs that a node agent runs: when they are collected, what hinders."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.domain.launch import (
    AfterJob,
    ArtifactOrder,
    Collected,
    ProcessLimits,
)
from forge_actors.runtime.kept_artifacts import KeptFile, kept
from tests.edges.node_jobs import (
    named,
    opened,
    order,
    run,
    shell,
    stop_when_ready,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def wanting(home: Path, *patterns: str, **limits: Any) -> ArtifactOrder:
    values = {"files": 1000, "bytes": 1 << 30, "seconds": 60.0, **limits}
    return ArtifactOrder(patterns, str(home), **values)


def endless(folder: Path) -> Callable[[], Awaitable[None]]:
    """A folder with a file that takes very long to read; waits until that has begun."""
    folder.mkdir()
    (folder / "big").touch()
    os.truncate(folder / "big", 40 << 30)
    libc = ctypes.CDLL(None)
    fd = libc.inotify_init1(os.O_CLOEXEC)
    in_open = 0x20
    assert libc.inotify_add_watch(fd, os.fsencode(folder / "big"), in_open) >= 0

    async def begun() -> None:
        await trio.lowlevel.wait_readable(fd)
        os.close(fd)

    return begun


async def test_they_are_collected_before_the_command_that_follows(home: Path) -> None:
    (home / "folder").mkdir()
    wanted = shell(
        home,
        "echo made > made; echo kept; exit 3",
        cwd=str(home / "folder"),
        artifacts=wanting(home, "*"),
        after_job=f"rm made; ls {home}/artifacts/*/1",
        env={"PYTHONPATH": "/nowhere", "LD_PRELOAD": ""},
        secrets={"TOKEN": "a-secret-value"},
    )
    (receipt,) = await run(home, wanted)
    assert (receipt.exit_code, receipt.artifacts) == (3, Collected())
    assert receipt.after_job == AfterJob(exit_code=0)
    assert text(wanted) == "kept\n1\nmanifest.json\n"
    found = kept(str(home), named(home), 1, receipt.artifacts)
    assert (found.state, [file.path for file in found.files]) == ("complete", ["made"])


async def test_a_job_that_is_stopped_or_out_of_time_leaves_them_too(
    home: Path,
) -> None:
    (home / "folder").mkdir()
    place = {"cwd": str(home / "folder"), "artifacts": wanting(home, "*", "no")}
    wanted = shell(home, "echo x > made; echo; exec sleep 600", **place)
    async with opened(home) as launcher:
        receipt = await stop_when_ready(launcher, wanted)
    assert receipt.ending == "stop"
    assert receipt.artifacts == Collected(left_out=True)
    late = shell(home, "exec sleep 600", job="late", wall=0.2, **place)
    (receipt,) = await run(home, late)
    assert (receipt.ending, receipt.artifacts) == ("wall", Collected(left_out=True))
    found = kept(str(home), named(home, "late"), 1, receipt.artifacts)
    assert [file.path for file in found.files] == ["made"]


async def test_what_could_not_be_collected_is_told_and_changes_nothing(
    home: Path,
) -> None:
    (home / "artifacts").symlink_to("/tmp")
    (home / "folder").mkdir()
    wanted = shell(home, "true", cwd=str(home), artifacts=wanting(home, "folder"))
    (receipt,) = await run(home, wanted)
    assert receipt.exit_code == 0
    assert receipt.artifacts is not None
    assert receipt.artifacts.error == "it failed, see the end of the job's stderr"
    problem = "the artifacts were not collected: Not a directory\n"
    assert text(wanted, "stderr") == problem
    found = kept(str(home), named(home), 1, receipt.artifacts)
    assert (found.state, found.files) == ("incomplete", [])


async def test_the_folder_is_that_in_which_the_job_began(home: Path) -> None:
    """However it is spelt, wherever it is moved to, and whatever is in its place."""
    (home / "folder").mkdir()
    (home / "link").symlink_to("folder")
    script = "echo ours > a; cd ..; mv folder moved; mkdir folder; echo not > folder/a"
    place = {"cwd": str(home / "link"), "artifacts": wanting(home, "a")}
    wanted = shell(home, script, **place)
    (receipt,) = await run(home, wanted)
    assert receipt.artifacts == Collected()
    with KeptFile(str(home), named(home), 1, "a").opened() as read:
        assert read(100) == b"ours\n"


async def test_a_folder_that_is_gone_has_nothing(home: Path) -> None:
    (home / "folder").mkdir()
    place = {"cwd": str(home / "folder"), "artifacts": wanting(home, "*")}
    (receipt,) = await run(home, shell(home, "cd /; rmdir $OLDPWD", **place))
    assert receipt.artifacts == Collected(left_out=True)


@pytest.mark.parametrize("how", ["plain", "limits", "pty", "no program", "no folder"])
async def test_it_leaves_no_descriptor_open_in_the_agent(home: Path, how: str) -> None:
    (home / "folder").mkdir()
    extra: dict[str, Any] = {"artifacts": wanting(home, "*"), "after_job": "true"}
    extra["cwd"] = str(home / ("nowhere" if how == "no folder" else "folder"))
    if how == "limits":
        extra["limits"] = ProcessLimits(nice=1)
    async with opened(home) as launcher:
        held = Path(f"/proc/{launcher.agent_pid}/fd")
        before = len(list(held.iterdir()))
        script = "/no/program" if how == "no program" else "true"
        wanted = order(home, script, pty=how == "pty", **extra)
        receipt = await launcher.launch(wanted).exited()
        assert (receipt.artifacts is None) == how.startswith("no")
        assert len(list(held.iterdir())) == before


async def test_a_cancel_ends_the_collecting(home: Path) -> None:
    wanted = shell(
        home,
        "echo",
        cwd=str(home / "folder"),
        artifacts=wanting(home, "*", bytes=1 << 50),
        after_job="echo after",
    )
    async with opened(home) as launcher:
        begun = endless(home / "folder")
        attempt = launcher.launch(wanted)
        await begun()
        attempt.stop()
        receipt = await attempt.exited()
    assert receipt.exit_code == 0
    assert receipt.artifacts == Collected(error="it was ended by SIGTERM")
    assert receipt.after_job == AfterJob(exit_code=0)
    found = kept(str(home), named(home), 1, receipt.artifacts)
    assert (found.state, found.files) == ("incomplete", [])
    assert list((home / "artifacts" / named(home)).iterdir()) == []


async def test_the_death_of_the_agent_meanwhile_is_told(home: Path) -> None:
    wanted = shell(
        home,
        "exit 3",
        cwd=str(home / "folder"),
        artifacts=wanting(home, "*", bytes=1 << 50),
        after_job="touch ran",
    )
    async with opened(home) as launcher:
        begun = endless(home / "folder")
        attempt = launcher.launch(wanted)
        await begun()
        os.kill(launcher.agent_pid, signal.SIGKILL)
        receipt = await attempt.exited()
    assert (receipt.ending, receipt.exit_code) == ("exit", 3)
    assert receipt.artifacts == Collected(unfinished=True)
    assert receipt.after_job is not None
    assert receipt.after_job.error is not None
    assert "before it could begin" in receipt.after_job.error
    assert not (home / "folder" / "ran").exists()
    found = kept(str(home), named(home), 1, receipt.artifacts)
    assert (found.state, found.files) == ("incomplete", [])
