"""The classes `worktrees` and `preserved` of the clean-up, by a desk of our own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from forge_actors.domain.cleaning import CleanRequest, Removal, Skip
from forge_actors.edges.cleanup.worktrees import cleaner
from forge_actors.edges.cleanup.worktrees.cleaner import WorktreeCleaner
from forge_actors.edges.cleanup.worktrees.preserved import PreservedCleaner
from tests.edges.removal_kit import BRANCH, JOB, NOW, REPO, Lab, git

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from forge_actors.domain.cleaning import ClassReport
    from forge_actors.domain.worktrees import Worktree

HOUR, DAY = 3600.0, 86_400.0


class TestDesk:
    """Answers with one worktree and its repository; remembers what it is told."""

    __test__ = False

    def __init__(self, lab: Lab, now: float = NOW + 2 * DAY) -> None:
        self.lab = lab
        self.home = os.path.realpath(lab.home)
        self.request = CleanRequest(self.home, now)
        self.rules: dict[str, Any] = {}
        self.job_state: str | None = "succeeded"
        self.goes_on = True
        self.removals: list[Removal] = []
        self.skips: list[Skip] = []
        self.failures: list[tuple[str, str]] = []

    def read(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        subject = self.lab.subject()
        place = (subject.common_dir, subject.device, subject.inode)
        worktree = self.lab.worktree
        if query == "repository_place":
            assert parameters == (REPO,)
            return [("app", *place)]
        if query == "worktree_users":
            assert parameters == (JOB, worktree.path)
            return [] if self.job_state == "succeeded" else [(self.job_state,)]
        assert query == "worktrees_to_clean"
        if worktree.state == "removed":
            return []
        row = structs.astuple(worktree)
        return [(*row, "app", *place, self.job_state, NOW)]

    def may_go_on(self) -> bool:
        return self.goes_on

    def scanned(self, count: int = 1) -> None:
        pass

    def record(self, worktree: Worktree, step: str) -> None:
        self.lab.worktree = worktree

    def removed(self, removal: Removal) -> None:
        self.removals.append(removal)

    def skipped(self, skip: Skip) -> None:
        self.skips.append(skip)

    def failed(self, what: str, error: str) -> None:
        self.failures.append((what, error))

    def forget_jobs(self, jobs: Sequence[str]) -> list[str]:
        raise AssertionError

    def forget_events(self, before: int) -> int:
        raise AssertionError

    def upkeep(self) -> int:
        raise AssertionError

    def clean(self, **wanted: Any) -> ClassReport:
        self.request = structs.replace(self.request, **wanted)
        return WorktreeCleaner().run(self, None)

    def forget(self, **wanted: Any) -> ClassReport:
        self.request = structs.replace(self.request, **wanted)
        return PreservedCleaner().run(self, None)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(cleaner.time, "time", lambda: NOW + 2 * DAY)
    return Lab(tmp_path)


def test_what_is_older_than_a_day_goes(lab: Lab) -> None:
    desk = TestDesk(lab, NOW + DAY - 1)
    report = desk.clean()
    assert desk.removals == []
    assert lab.tree.exists()
    assert report.due_at == NOW + DAY
    desk.clean(now=NOW + DAY)
    assert [(each.what, each.reason) for each in desk.removals] == [
        (JOB, "older than 1d")
    ]
    assert not lab.tree.exists()
    assert lab.worktree.state == "removed"


def test_a_dry_run_says_what_would_go_and_touches_nothing(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "dirty\n"})
    before = sorted(lab.home.rglob("*")), lab.refs()
    desk = TestDesk(lab)
    desk.clean(dry_run=True)
    assert [each.what for each in desk.removals] == [JOB]
    assert (sorted(lab.home.rglob("*")), lab.refs()) == before
    assert lab.worktree.state == "ready"


@pytest.mark.parametrize("state", ["queued", "running", "waiting_for_retry"])
def test_the_worktree_of_an_active_job_stays_also_if_asked_for(
    lab: Lab, state: str
) -> None:
    desk = TestDesk(lab)
    desk.job_state = state
    desk.clean()
    desk.clean(worktrees=(JOB,), force=True)
    assert desk.removals == []
    assert [each.reason for each in desk.skips] == [f"a job in it is {state}"]
    assert lab.tree.exists()


def test_what_a_person_keeps_goes_only_by_force(lab: Lab) -> None:
    lab.worktree = structs.replace(lab.worktree, kept=True)
    desk = TestDesk(lab)
    desk.clean()
    desk.clean(worktrees=(JOB,))
    assert desk.removals == []
    assert "a person keeps it" in desk.skips[-1].reason
    desk.clean(worktrees=(JOB,), force=True)
    assert [each.what for each in desk.removals] == [JOB]


def test_switched_off_only_what_is_asked_for_goes(lab: Lab) -> None:
    desk = TestDesk(lab)
    desk.rules = {"worktrees": {"on": False}}
    desk.clean()
    assert desk.removals == []
    desk.clean(worktrees=(JOB,))
    assert [each.reason for each in desk.removals] == ["it was asked for"]


def test_more_bytes_than_are_to_stay_go(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "x" * 50_000})
    desk = TestDesk(lab, NOW + HOUR)
    desk.rules = {"worktrees": {"bytes": 10_000}}
    desk.clean()
    assert [each.what for each in desk.removals] == [JOB]


def test_what_had_to_stay_is_not_looked_at_again_at_once(lab: Lab) -> None:
    lab.write(lab.tree, {"x.log": "x" * 5000})
    desk = TestDesk(lab)
    desk.rules = {"worktrees": {"archive_bytes": 1000, "age": 1.0}}
    desk.clean()
    assert "archive_bytes" in desk.skips[0].reason
    (lab.tree / "x.log").unlink()
    desk.clean(now=NOW + 2 * DAY + HOUR - 1)
    assert desk.skips[1].reason == desk.skips[0].reason
    desk.clean(now=NOW + 2 * DAY + HOUR)
    assert [each.what for each in desk.removals] == [JOB]


def test_what_lies_among_them_stays_and_is_told(lab: Lab, tmp_path: Path) -> None:
    """What was in the way when a worktree was made may be somebody's only copy."""
    tmp_path.joinpath("outside").mkdir()
    tmp_path.joinpath("outside", "file").write_text("mine")
    around = lab.tree.parent
    left = around / f"{JOB}.left-0badcafe"
    left.mkdir()
    (left / "only").write_text("copy")
    (around / "link").symlink_to(tmp_path / "outside")
    around.with_name("elsewhere").symlink_to(tmp_path / "outside")
    desk = TestDesk(lab, NOW + HOUR)
    desk.clean()
    told = [(each.what.removeprefix("worktrees/"), each.reason) for each in desk.skips]
    strange = "no worktree that we know has such a name"
    aside = "it was in the way of a worktree: look into it, and remove it yourself"
    assert told == [
        (f"{REPO}/{left.name}", aside),
        (f"{REPO}/link", strange),
        ("elsewhere", strange),
    ]
    assert (left / "only").read_text() == "copy"
    assert (desk.removals, desk.failures) == ([], [])


def test_what_they_take_is_counted_if_there_is_time(lab: Lab) -> None:
    desk = TestDesk(lab, NOW + HOUR)
    before = desk.clean().size
    assert before is not None
    lab.write(lab.tree, {"a.txt": "x" * 500_000})
    after = desk.clean().size
    assert after is not None
    assert 490_000 <= after - before < 520_000
    desk.goes_on = False
    assert desk.clean().size is None


def test_a_link_in_the_place_of_all_of_them_is_told(lab: Lab) -> None:
    around = lab.tree.parent.parent
    around.rename(around.with_name("elsewhere"))
    around.symlink_to("elsewhere")
    desk = TestDesk(lab, NOW + HOUR)
    assert desk.clean().size is None
    [(what, why)] = desk.failures
    assert (what, "is a link" in why) == ("worktrees", True)


def test_without_time_left_nothing_is_begun(lab: Lab) -> None:
    desk = TestDesk(lab)
    desk.goes_on = False
    desk.clean()
    assert (desk.removals, desk.skips) == ([], [])
    assert lab.tree.exists()


def removed(lab: Lab) -> TestDesk:
    """A desk after the worktree was removed, so long ago that all may go."""
    desk = TestDesk(lab)
    desk.clean()
    assert lab.worktree.state == "removed"
    desk.removals.clear()
    desk.request = structs.replace(desk.request, now=NOW + 365 * DAY)
    return desk


def test_what_was_saved_goes_once_it_is_old_and_merged(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "work\n", "x.log": "ignored\n"})
    git(lab.tree, "commit", "-q", "-a", "-m", "work")
    desk = removed(lab)
    assert "ignored\n" in lab.contents()
    tip = git(lab.repo, "rev-parse", BRANCH)
    git(lab.repo, "branch", "-q", "-D", BRANCH)
    desk.forget()
    assert desk.removals == []
    assert desk.skips[-1].reason == "it is the only copy of work that was not merged"
    git(lab.repo, "merge", "-q", "--squash", tip)
    git(lab.repo, "commit", "-q", "-m", "merged")
    desk.forget(now=NOW + 30 * DAY)
    assert desk.removals == []
    desk.forget(now=NOW + 365 * DAY, dry_run=True)
    assert lab.preserved.exists()
    desk.removals.clear()
    desk.forget(dry_run=False)
    assert [each.what for each in desk.removals] == [JOB]
    assert not lab.preserved.exists()
    assert not [ref for ref in lab.refs() if "forge-actors" in ref]
    lab.check_store()


def test_what_is_on_a_branch_of_the_user_is_no_only_copy(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "work\n"})
    git(lab.tree, "commit", "-q", "-a", "-m", "work")
    desk = removed(lab)
    desk.forget()
    assert [each.what for each in desk.removals] == [JOB]
    assert set(lab.refs()) == {"refs/heads/main", f"refs/heads/{BRANCH}"}


def test_the_only_copy_goes_only_if_the_settings_say_so(lab: Lab) -> None:
    inner = lab.tree / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    lab.write(inner, {"x": "only here\n"})
    desk = removed(lab)
    desk.forget()
    assert "never committed" in desk.skips[-1].reason
    desk.rules = {"preserved": {"age": 1.0, "unmerged": True}}
    desk.forget()
    assert [each.what for each in desk.removals] == [JOB]


def test_a_receipt_that_cannot_be_read_protects_what_is_beside_it(lab: Lab) -> None:
    desk = removed(lab)
    (lab.preserved / "receipt.json").write_text("{")
    desk.forget()
    assert desk.removals == []
    assert desk.skips[-1].reason == "its receipt cannot be read"
    assert lab.preserved.exists()


def test_a_link_among_what_was_saved_is_left_alone(lab: Lab, tmp_path: Path) -> None:
    desk = removed(lab)
    victim = tmp_path / "victim"
    lab.preserved.rename(victim)
    lab.preserved.symlink_to(victim)
    desk.forget()
    assert desk.removals == []
    assert (victim / "receipt.json").exists()
    assert desk.failures


def test_a_removal_that_is_cut_short_each_time_keeps_no_other_waiting(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = TestDesk(lab)
    rows = desk.read("worktrees_to_clean")
    other = (f"{JOB[:-1]}u", *rows[0][1:2], "worktrees/none", *rows[0][3:])
    monkeypatch.setattr(
        desk, "read", lambda query, *_: [*rows, other] if "clean" in query else []
    )
    order: list[str] = []

    class Killed(Exception):
        pass

    class Cut(cleaner.removal.Removal):
        def _looked(self) -> str:
            order.append(self._worktree.id)
            raise Killed

        def _lock(self) -> None:
            order.append(self._worktree.id)
            raise Killed

    monkeypatch.setattr(cleaner.removal, "Removal", Cut)
    for later in range(2):
        moment = NOW + 2 * DAY + later
        monkeypatch.setattr(cleaner.time, "time", lambda moment=moment: moment)
        with pytest.raises(Killed):
            desk.clean()
    assert sorted(order) == sorted([JOB, other[0]])
