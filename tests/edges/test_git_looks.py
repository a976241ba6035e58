"""Looking at real checkouts: every state there is, within bounds, without a trace."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
import trio

from forge_actors.domain.git_status import GitStatus
from forge_actors.domain.repositories import Repository
from forge_actors.edges.gateway.removal import watching
from forge_actors.edges.git import status as status_module
from forge_actors.edges.git.status import GitSampler
from forge_actors.testing.looking_contract import (
    SAMPLER_CHECKS,
    WATCH_CHECKS,
)
from tests.edges.looking_kit import (
    FakePlace,
    RealPlace,
    git,
    hang,
    make,
    record,
    told_pid,
)

if TYPE_CHECKING:
    from forge_actors.testing.looking_contract import Check

#: Whatever is made, moved, removed or written in a folder.
ANYTHING = 0x2 | 0x40 | 0x80 | 0x100 | 0x200

checks = pytest.mark.parametrize(
    "check", [*SAMPLER_CHECKS, *WATCH_CHECKS], ids=lambda check: check.__name__
)


@checks
async def test_the_real_ones_keep_the_contract(check: Check, tmp_path: Path) -> None:
    place = RealPlace(tmp_path)
    with closing(place.watch):
        await check(place)


@checks
@pytest.mark.mock_clock
async def test_the_fakes_keep_the_contract(check: Check) -> None:
    await check(FakePlace())


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make(tmp_path / "app")


async def look(path: Path) -> GitStatus:
    sample = await GitSampler().sample(record(path), 60.0)
    assert sample.status is not None, sample.problem
    return sample.status


async def problem(repository: Repository) -> str:
    sample = await GitSampler().sample(repository, 60.0)
    assert sample.status is None
    assert sample.problem is not None
    return sample.problem


# States


async def test_a_new_repository_has_a_branch_and_no_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "trunk")
    status = await look(tmp_path)
    assert (status.branch, status.unborn, status.clean) == ("trunk", True, True)


async def test_staged_unstaged_and_untracked_are_told_apart(repo: Path) -> None:
    (repo / "file").write_text("second\n")
    git(repo, "add", "file")
    (repo / "file").write_text("third\n")
    (repo / "new\nline").write_text("")
    (repo / " ? x").write_text("")
    status = await look(repo)
    assert (status.staged, status.unstaged, status.untracked) == (1, 1, 2)


async def test_a_detached_head_has_a_commit_and_no_branch(repo: Path) -> None:
    git(repo, "checkout", "-q", "--detach")
    status = await look(repo)
    assert status.detached
    assert status.head == git(repo, "rev-parse", "HEAD")


async def test_the_distance_to_the_upstream(repo: Path, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repo), str(clone))
    for number in range(2):
        git(clone, "commit", "-q", "--allow-empty", "-m", f"mine {number}")
    git(repo, "commit", "-q", "--allow-empty", "-m", "theirs")
    git(clone, "fetch", "-q")
    status = await look(clone)
    assert (status.upstream, status.ahead, status.behind) == ("origin/main", 2, 1)
    git(clone, "update-ref", "-d", "refs/remotes/origin/main")
    gone = await look(clone)
    assert (gone.upstream, gone.ahead) == ("origin/main", None)


async def test_a_merge_and_a_rebase_that_stopped(repo: Path) -> None:
    git(repo, "checkout", "-q", "-b", "side")
    (repo / "file").write_text("side\n")
    git(repo, "commit", "-q", "-a", "-m", "side")
    git(repo, "checkout", "-q", "main")
    (repo / "file").write_text("main\n")
    git(repo, "commit", "-q", "-a", "-m", "main")
    git(repo, "merge", "side", check=False)
    merging = await look(repo)
    assert (merging.operation, merging.conflicts, merging.branch) == (
        "merge",
        1,
        "main",
    )
    git(repo, "merge", "--abort")
    git(repo, "rebase", "side", check=False)
    rebasing = await look(repo)
    assert (rebasing.operation, rebasing.detached) == ("rebase", True)


async def test_a_linked_worktree_has_a_status_of_its_own(
    repo: Path, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    git(repo, "worktree", "add", "-q", "-b", "other", str(linked))
    (linked / "new").write_text("")
    assert (await look(linked)).branch == "other"
    assert (await look(linked)).untracked == 1
    assert (await look(repo)).clean


async def test_a_repository_of_sha256(tmp_path: Path) -> None:
    path = make(tmp_path / "long", "--object-format=sha256")
    status = await look(path)
    assert len(status.head or "") == 64


async def test_what_agents_keep_for_themselves_is_left_out(repo: Path) -> None:
    (repo / "sub" / ".ai" / "harness").mkdir(parents=True)
    (repo / "sub" / ".ai" / "harness" / "state").write_text("")
    (repo / ".ai" / "harness" / "deep").mkdir(parents=True)
    (repo / ".ai" / "harness" / "deep" / "state").write_text("")
    assert (await look(repo)).clean
    (repo / ".ai" / "notes").write_text("")
    assert (await look(repo)).untracked == 1


async def test_a_branch_with_a_name_that_is_no_text(repo: Path) -> None:
    head = repo / ".git" / "HEAD"
    commit = git(repo, "rev-parse", "HEAD")
    ref = os.fsencode(repo / ".git" / "refs" / "heads") + b"/caf\xe9"
    Path(os.fsdecode(ref)).write_text(f"{commit}\n")
    head.write_bytes(b"ref: refs/heads/caf\xe9\n")
    assert (await look(repo)).branch == "caf\N{REPLACEMENT CHARACTER}"


# What cannot be looked at


async def test_each_way_of_being_gone_has_its_reason(
    repo: Path, tmp_path: Path
) -> None:
    known = record(repo)
    repo.rename(tmp_path / "moved")
    assert "its folder is gone" in await problem(known)
    make(repo)
    assert f"repo show {known.name}" in await problem(known)


async def test_a_checkout_in_another_one_is_not_taken_for_that(
    repo: Path, tmp_path: Path
) -> None:
    inner = make(repo / "inner")
    known = record(inner)
    (inner / ".git").rename(tmp_path / "elsewhere")
    assert "is no git work tree any more" in await problem(known)
    (inner / ".git").mkdir()  # not one that git takes for a repository
    moved = record(repo)
    known = Repository(
        "repo", "inner", str(inner), moved.common_dir, moved.device, moved.inode, 1.0
    )
    assert "not a git repository" in await problem(known)


async def test_a_repository_that_is_damaged_says_so(repo: Path) -> None:
    (repo / ".git" / "index").write_bytes(b"nonsense")
    assert "index" in await problem(record(repo))


async def test_without_git_there_is_a_reason(
    repo: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    known = record(repo)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert await problem(known) == "git is not installed"


async def test_the_repository_of_another_user_is_refused_with_the_way_out(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.getuid():
        pytest.skip("only root can give a repository to somebody else")
    known = record(repo)
    for path in (repo, repo / ".git"):
        os.chown(path, 12345, 12345)
    assert "safe.directory" in await problem(known) or "dubious" in await problem(known)


# Bounds


async def test_a_status_that_is_too_long_is_cut_and_says_so(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(200):
        (repo / f"{number:0100}").write_text("")
    assert (await look(repo)).untracked == 200
    monkeypatch.setattr(status_module, "MAX_OUTPUT", 4096)
    status = await look(repo)
    assert status.at_least
    assert 10 < status.untracked < 200
    assert status.branch == "main"


async def test_much_that_git_complains_of_keeps_nobody_waiting(repo: Path) -> None:
    config = repo / ".git" / "info" / "attributes"
    config.parent.mkdir(exist_ok=True)
    config.write_text("".join(f"!{'x' * 80}{n} y\n" for n in range(3000)))
    os.utime(repo / "file", (1, 1))
    assert (await look(repo)).branch == "main"


async def test_what_hangs_is_ended_with_all_that_it_started(repo: Path) -> None:
    known, sampler = record(repo), GitSampler()
    with told_pid(hang(repo)) as told:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(sampler.sample, known, 60.0)
            filtering = os.pidfd_open(await told())
            nursery.cancel_scope.cancel()
    try:
        await trio.lowlevel.wait_readable(filtering)
    finally:
        os.close(filtering)
    # The next one is another one.
    git(repo, "config", "--unset", "filter.slow.clean")
    assert (await sampler.sample(known, 60.0)).status is not None


async def test_a_sample_leaves_no_descriptor_and_no_child(repo: Path) -> None:
    known, sampler = record(repo), GitSampler()
    await sampler.sample(known, 60.0)
    before, children = descriptors(), psutil.Process().children(recursive=True)
    for _ in range(5):
        await sampler.sample(known, 60.0)
    gone = Repository("x", "x", "/nowhere", "/nowhere/.git", 1, 1, 1.0)
    await sampler.sample(gone, 60.0)
    hang(repo)
    await sampler.sample(known, 0.2)
    assert descriptors() == before
    assert psutil.Process().children(recursive=True) == children


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


# Without a trace


async def test_no_lock_is_ever_made_and_nothing_is_written(repo: Path) -> None:
    # So that git would refresh the index if it might.
    os.utime(repo / "file", (1, 1))
    git(repo, "config", "core.fsmonitor", "true")
    git(repo, "config", "core.untrackedCache", "true")
    index = (repo / ".git" / "index").stat()
    with watching(str(repo / ".git"), ANYTHING) as events:
        for _ in range(5):
            assert (await look(repo)).clean
        with pytest.raises(BlockingIOError):
            os.read(events, 4096)
        # The test would see it: git itself refreshes the index.
        git(repo, "status")
        assert b"index.lock" in os.read(events, 4096)
    assert (repo / ".git" / "index").stat().st_ino != index.st_ino


async def test_a_lock_that_somebody_holds_is_neither_waited_for_nor_taken(
    repo: Path,
) -> None:
    lock = repo / ".git" / "index.lock"
    lock.write_text("held")
    assert (await look(repo)).clean
    assert lock.read_text() == "held"


async def test_no_program_of_the_repository_is_run(repo: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    git(repo, "config", "core.fsmonitor", str(program))
    hooks = repo / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").symlink_to(program)
    await look(repo)
    assert not ran.exists()


async def test_the_environment_of_a_hook_leads_nowhere_else(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make(tmp_path / "other")
    git(other, "checkout", "-q", "-b", "wrong")
    known = record(repo)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    sample = await GitSampler().sample(known, 60.0)
    assert sample.status is not None
    assert sample.status.branch == "main"


async def test_git_has_no_terminal_gives_way_and_inherits_no_signals(
    repo: Path,
) -> None:
    known = record(repo)
    old = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        with told_pid(hang(repo)) as told:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(GitSampler().sample, known, 60.0)
                pid = await told()
                status = Path(f"/proc/{pid}/status").read_text()
                leader = os.getsid(pid)
                assert leader != os.getsid(0)
                while os.sched_getscheduler(leader) != os.SCHED_BATCH:
                    await trio.lowlevel.checkpoint()  # the start is just being told
                nursery.cancel_scope.cancel()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
        signal.signal(signal.SIGTERM, old)
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert int(fields["SigBlk"], 16) == 0
    ignored = int(fields["SigIgn"], 16)
    for number in (signal.SIGTERM, signal.SIGPIPE):  # Python ignores the second one
        assert not ignored & 1 << (number - 1)
