"""What is published of good work: written down around it, and never done twice."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.domain.epic.phases import effect_of
from forge_actors.domain.epic.records import (
    Assignment,
    EngineState,
    RunKey,
    assignment,
    decode,
    encode,
)
from forge_actors.edges.git import issue_branches
from forge_actors.edges.github.pulls import GitHubPullRequests
from forge_actors.edges.github.tokens import Tokens
from forge_actors.runtime.epic_effects import NotNow, Publisher
from forge_actors.runtime.epic_settings import EpicSettings
from tests.edges.github_kit import TOKEN, bench

if TYPE_CHECKING:
    from forge_actors.domain.github.pulls import PullRequests
    from forge_actors.testing.github import GitHubServer

BRANCH = "forge/epic-7/issue-12"
KEY = RunKey(101, 12)
NOW = "2026-11-30T18:00:00Z"


class Crash(Exception):
    """The worker was killed here."""


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


class Work:
    """Work that is to be published, a remote for it, and the state on the disk."""

    def __init__(self, folder: Path, server: GitHubServer | None = None) -> None:
        self.remote, self.folder = folder / "remote.git", folder / "work"
        self.server = server
        subprocess.run(["git", "init", "-q", "--bare", self.remote], check=True)
        self.pushes = self.remote / "pushes"
        hook = self.remote / "hooks" / "post-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ncat >> {self.pushes}\n")
        hook.chmod(0o755)
        subprocess.run(["git", "init", "-q", "-b", "main", self.folder], check=True)
        self.base = self.commit("begin")
        git(self.folder, "switch", "-q", "-c", BRANCH)
        git(self.folder, "remote", "add", "origin", str(self.remote))
        self.effects: tuple[str, ...] = ("push",)
        self.saves = 0
        #: The save that comes to nothing, and all after it.
        self.crash_at = 0
        self.saved = EngineState(
            run_key=KEY,
            issue_url="https://github.com/octo/demo/issues/12",
            run_id="r-0123456789",
            phase="publish",
            config_digest=f"sha256:{'0' * 64}",
            branch=BRANCH,
            base_commit=self.base,
            tries={},
            updated_at=NOW,
        )

    def commit(self, words: str) -> str:
        git(self.folder, "commit", "-q", "--allow-empty", "-m", words)
        return git(self.folder, "rev-parse", "HEAD")

    def task(self) -> Assignment:
        url = "https://github.com/octo/demo/issues/12"
        return assignment(KEY, 9012, url, "Say \x1b[31mhello", "")

    def save(self, state: EngineState) -> None:
        self.saves += 1
        if self.crash_at and self.saves >= self.crash_at:
            raise Crash
        self.saved = decode(EngineState, encode(state))

    def pulls(self) -> PullRequests:
        assert self.server is not None
        tokens = Tokens({"GH_TOKEN": TOKEN, "PATH": ""})
        return GitHubPullRequests("github.com", tokens, self.server.base)

    async def publish(self) -> EngineState:
        settings = EpicSettings(effects=self.effects)  # type: ignore[arg-type]
        publisher = Publisher(
            *(str(self.folder), self.task(), settings),
            *(self.pulls, self.save, lambda _: NOW),
        )
        return await publisher.publish(self.saved)

    @property
    def times_pushed(self) -> int:
        if not self.pushes.exists():
            return 0
        return len(self.pushes.read_text().splitlines())

    @property
    def there(self) -> str:
        return git(self.remote, "rev-parse", f"refs/heads/{BRANCH}")


async def test_good_work_is_pushed_and_that_is_written_down(tmp_path: Path) -> None:
    work = Work(tmp_path)
    head = work.commit("work")
    state = await work.publish()
    assert state.phase == "ready_for_merge"
    assert work.there == head
    done = effect_of(work.saved, "push")
    assert done is not None
    assert (done.state, done.commit) == ("done", head)
    assert work.saves == 2, "before it and after it"


@pytest.mark.parametrize("crash_at", [1, 2])
async def test_a_crash_around_a_push_leads_to_one_push(
    tmp_path: Path, crash_at: int
) -> None:
    work = Work(tmp_path)
    head = work.commit("work")
    work.crash_at = crash_at
    with pytest.raises(Crash):
        await work.publish()
    begun = effect_of(work.saved, "push")
    assert (begun is not None and begun.state == "begun") == (crash_at == 2)
    assert work.times_pushed == crash_at - 1
    work.crash_at = 0
    assert (await work.publish()).phase == "ready_for_merge"
    assert (work.there, work.times_pushed) == (head, 1)
    done = effect_of(work.saved, "push")
    assert done is not None
    assert (done.detail == "it was there") == (crash_at == 2), "it looks before"


async def test_work_that_goes_on_is_pushed_on_top(tmp_path: Path) -> None:
    work = Work(tmp_path)
    work.commit("work")
    await work.publish()
    head = work.commit("more")
    await work.publish()
    assert (work.there, work.times_pushed) == (head, 2)


async def test_a_branch_that_somebody_else_moved_is_not_overwritten(
    tmp_path: Path,
) -> None:
    work = Work(tmp_path)
    theirs = work.commit("theirs")
    git(work.folder, "push", "-q", "origin", f"{theirs}:refs/heads/{BRANCH}")
    git(work.folder, "reset", "-q", "--hard", work.base)
    work.commit("ours")
    state = await work.publish()
    assert state.phase == "blocked"
    assert "does not take" in state.detail
    assert work.there == theirs
    known = effect_of(work.saved, "push")
    assert known is not None
    assert known.state == "failed"


async def test_a_remote_that_cannot_be_reached_is_tried_again_later(
    tmp_path: Path,
) -> None:
    work = Work(tmp_path)
    work.commit("work")
    away = work.remote.rename(tmp_path / "away")
    with pytest.raises(NotNow, match="cannot be asked"):
        await work.publish()
    assert work.saved.phase == "publish"
    away.rename(work.remote)
    assert (await work.publish()).phase == "ready_for_merge"


async def test_without_a_commit_there_is_nothing_to_publish(tmp_path: Path) -> None:
    work = Work(tmp_path)
    assert (await work.publish()).phase == "ready_for_merge"
    assert (work.saves, work.times_pushed) == (0, 0)


async def test_a_pull_request_is_a_draft_that_is_opened_once_whatever_crashes(
    tmp_path: Path,
) -> None:
    async with bench() as github:
        github.server.routes.writable = True
        github.world.branches.add(BRANCH)
        opened = github.world.pulls
        for crash_at in (3, 4, 0):  # before it is begun, before it is done, not at all
            work = Work(tmp_path / str(crash_at), github.server)
            work.effects = ("push", "pull_request")
            work.commit("work")
            opened.clear()
            github.troubles.log.clear()
            work.crash_at = crash_at
            if crash_at:
                with pytest.raises(Crash):
                    await work.publish()
                assert len(opened) == crash_at - 3
            work.crash_at = 0
            assert (await work.publish()).phase == "ready_for_merge"
            [made] = opened
            asked = [each.method for each in github.troubles.log]
            assert asked.count("POST") == 1
            assert (made.draft, made.head, made.title) == (True, BRANCH, "Say hello")
            done = effect_of(work.saved, "pull_request")
            assert done is not None
            assert done.state == "done"
            assert done.detail.startswith(f"#{made.number}")
            github.troubles.log.clear()
            await work.publish()
            assert not github.troubles.log, "what is done is not even looked at"


async def test_an_answer_that_was_lost_is_found_out_and_a_refusal_takes_a_person(
    tmp_path: Path,
) -> None:
    async with bench() as github:
        github.server.routes.writable = True
        github.world.branches.add(BRANCH)
        work = Work(tmp_path / "lost", github.server)
        work.effects = ("push", "pull_request")
        work.commit("work")
        github.troubles.fault("/pulls$", nth=2, status=502)
        with pytest.raises(NotNow):
            await work.publish()
        begun = effect_of(work.saved, "pull_request")
        assert begun is not None
        assert begun.state == "begun"
        assert (await work.publish()).phase == "ready_for_merge"
        assert len(github.world.pulls) == 1
        github.world.pulls.clear()
        github.world.branches.clear()
        work = Work(tmp_path / "refused", github.server)
        work.effects = ("push", "pull_request")
        work.commit("work")
        state = await work.publish()
        assert state.phase == "blocked"
        assert "422" in state.detail
        known = effect_of(state, "pull_request")
        assert known is not None
        assert known.state == "failed"


async def test_what_is_left_uncommitted_is_committed_by_somebody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Work(tmp_path)
    assert not await issue_branches.commit_rest(str(work.folder), "Work")
    (work.folder / "new").write_text("1\n")
    assert await issue_branches.commit_rest(str(work.folder), "Work on issue #12")
    assert git(work.folder, "log", "-1", "--format=%an %s") == (
        "Forge Actors Work on issue #12"
    )
    git(work.folder, "config", "user.name", "Ann")
    git(work.folder, "config", "user.email", "ann@example.invalid")
    (work.folder / "new").unlink()
    assert await issue_branches.commit_rest(str(work.folder), "More")
    assert git(work.folder, "log", "-1", "--format=%an") == "Ann"
    assert structs.asdict(work.saved)["effects"] == []
