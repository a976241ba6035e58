"""The node agent starts a job only in the worktree that it was to be in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from forge_actors.domain.launch import ProcessLimits
from forge_actors.domain.worktrees import WorktreePlace
from forge_actors.testing.worktree_contract import planned
from tests.edges.node_jobs import lasting_time, opened, order, survivors
from tests.edges.worktree_ground import GitGround, git

if TYPE_CHECKING:
    from forge_actors.domain.launch import LaunchOrder, Receipt


class Ground(GitGround):
    """One with a worktree that is ready, and its agent."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(tmp_path)
        self.tmp_path = tmp_path
        self.place: WorktreePlace

    @property
    def root(self) -> Path:
        return Path(self.place.root)

    async def make(self) -> None:
        wanted = self.wanted("job")
        known = await planned(self.worktrees(), wanted)
        self.place = (await self.worktrees().make(wanted, known)).place

    def order(self, *argv: str, **changes: Any) -> LaunchOrder:
        made = order(self.tmp_path, *argv)
        values = {"cwd": self.place.root, "worktree": self.place}
        return structs.replace(made, **(values | changes))

    async def run(self, *argv: str, **changes: Any) -> Receipt:
        async with opened(self.tmp_path) as launcher:
            return await launcher.launch(self.order(*argv, **changes)).exited()


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def output(ground: Ground, receipt: Receipt) -> str:
    log = ground.order("true").log
    del receipt
    return Path(f"{log}.stdout").read_text()


KINDS = pytest.mark.parametrize(
    "how",
    [{}, {"pty": True}, {"limits": ProcessLimits(nice=1)}],
    ids=["spawned", "on a terminal", "with limits"],
)


@KINDS
async def test_a_job_starts_in_its_worktree(
    how: dict[str, Any], ground: Ground
) -> None:
    await ground.make()
    receipt = await ground.run("pwd", **how)
    assert receipt.exit_code == 0, receipt.error
    assert output(ground, receipt).strip() == str(ground.root)
    inner = await ground.run("pwd", cwd=str(ground.root / "folder"), **how)
    assert output(ground, inner).strip() == str(ground.root / "folder")


def vanish(ground: Ground) -> str:
    shutil.rmtree(ground.root)
    return "does not exist"


def replace(ground: Ground) -> str:
    ground.root.rename(ground.home / "old")
    shutil.copytree(ground.home / "old", ground.root)
    return "another folder is in its place"


def link(ground: Ground) -> str:
    ground.root.rename(ground.home / "old")
    ground.root.symlink_to(ground.repo)
    return "another folder is in its place"


def untie(ground: Ground) -> str:
    (ground.root / ".git").unlink()
    return "No such file or directory"


def retie(ground: Ground) -> str:
    (ground.root / ".git").write_text(f"gitdir: {ground.repo}/.git\n")
    return "leads to another repository"


def tie_by_link(ground: Ground) -> str:
    (ground.root / ".git").rename(ground.home / "git")
    (ground.root / ".git").symlink_to(ground.home / "git")
    return "Too many levels of symbolic links"


def prune(ground: Ground) -> str:
    shutil.rmtree(ground.place.git_dir)
    return "No such file or directory"


def lead_out(ground: Ground) -> str:
    (ground.root / "folder").rename(ground.home / "folder")
    (ground.root / "folder").symlink_to(ground.home / "folder")
    return "leads out of it"


@KINDS
@pytest.mark.parametrize(
    "change", [vanish, replace, link, untie, retie, tie_by_link, prune, lead_out]
)
async def test_it_does_not_start_where_the_worktree_is_not_what_it_was(
    change: Any, how: dict[str, Any], ground: Ground
) -> None:
    await ground.make()
    words = change(ground)
    told = ground.home / "told"
    receipt = await ground.run(
        "touch", str(told), cwd=str(ground.root / "folder"), **how
    )
    assert receipt.ending == "spawn"
    assert receipt.error is not None
    assert words in receipt.error
    assert not told.exists()
    assert os.getcwd() != str(ground.root)


async def test_the_command_after_a_job_is_looked_after_too(ground: Ground) -> None:
    await ground.make()
    receipt = await ground.run(
        "sh", "-c", "rm .git", after_job="git status > $HOME/told"
    )
    assert receipt.exit_code == 0
    assert receipt.after_job is not None
    assert receipt.after_job.error is not None
    assert "is not there as it was made" in receipt.after_job.error


# -- set-up --------------------------------------------------------------------------


async def set_up(ground: Ground, *commands: str, seconds: float = 60.0) -> None:
    await ground.make()
    ground.place = structs.replace(ground.place, setup=commands, setup_seconds=seconds)


async def test_the_set_up_runs_before_the_job_with_its_log_and_environment(
    ground: Ground,
) -> None:
    await set_up(ground, "pwd; echo $WHO > new", "cat new")
    receipt = await ground.run(
        *("sh", "-c", "cat ../new; exit 3"),
        cwd=str(ground.root / "folder"),
        env={"WHO": "me"},
    )
    assert (receipt.exit_code, receipt.setup_error) == (3, None)
    assert output(ground, receipt) == f"{ground.root}\nme\nme\n"
    state = Path(ground.place.setup_state).read_text()
    assert state == '{"done": true}'


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("exit 3", "exited with 3: exit 3"),
        ("kill -9 $$", "was ended by SIGKILL"),
        ("no-such-program", "exited with 127"),
    ],
)
async def test_a_set_up_that_fails_is_not_the_end_of_the_job(
    command: str, words: str, ground: Ground
) -> None:
    await set_up(ground, "true", command, "touch later")
    receipt = await ground.run("touch", "begun")
    assert receipt.setup_error is not None
    assert words in receipt.setup_error
    assert not (ground.root / "later").exists()
    assert not (ground.root / "begun").exists()


async def test_a_set_up_that_takes_too_long_is_ended_with_all_it_started(
    ground: Ground,
) -> None:
    lasting = lasting_time()
    await set_up(ground, f"sleep {lasting} & sleep {lasting}", seconds=0.2)
    receipt = await ground.run("touch", "begun")
    assert receipt.setup_error is not None
    assert "took too long, they have 0.2 s altogether" in receipt.setup_error
    assert survivors(lasting) == []
    assert not (ground.root / "begun").exists()


async def test_a_stop_during_the_set_up_ends_it(ground: Ground) -> None:
    await set_up(ground, "touch started; sleep 300.75")
    async with opened(ground.tmp_path) as launcher:
        attempt = launcher.launch(ground.order("touch", "begun"))
        await attempt.started()
        attempt.stop(grace=0.0)
        receipt = await attempt.exited()
    assert receipt.ending == "stop"
    assert receipt.setup_error is not None
    assert not (ground.root / "begun").exists()


async def test_a_program_that_is_not_there_after_the_set_up_did_not_start(
    ground: Ground,
) -> None:
    await set_up(ground, "true")
    receipt = await ground.run("no-such-program")
    assert (receipt.ending, receipt.setup_error) == ("spawn", None)
    assert receipt.exit_code is None
    assert receipt.error is not None
    assert "no-such-program" in receipt.error


async def test_the_set_up_may_make_the_program(ground: Ground) -> None:
    await set_up(ground, "printf '#!/bin/sh\\necho made\\n' > run; chmod +x run")
    receipt = await ground.run("./run")
    assert receipt.exit_code == 0
    assert output(ground, receipt) == "made\n"


async def test_a_broken_pipe_ends_what_the_set_up_becomes(ground: Ground) -> None:
    """Python ignores the signal; the job must not."""
    await set_up(ground, "true")
    receipt = await ground.run("sh", "-c", "kill -PIPE $$; echo survived")
    assert receipt.signal == "SIGPIPE"


async def test_without_commands_nothing_of_ours_runs_in_the_child(
    ground: Ground,
) -> None:
    await ground.make()
    async with opened(ground.tmp_path) as launcher:
        attempt = launcher.launch(ground.order("sleep", "300.75"))
        identity = await attempt.started()
        assert identity is not None
        command = Path(f"/proc/{identity.pid}/cmdline").read_bytes()
        assert command == b"sleep\x00300.75\x00"
        attempt.stop(grace=0.0)
        await attempt.exited()
    assert git(ground.repo, "status", "--porcelain") == ""
