"""Bringing a branch into a checkout: git's own and the older way give the same."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.edges.git.integrating.__main__ import apply
from forge_actors.edges.git.integrating.checkout import Checkout
from forge_actors.edges.git.integrating.git import Git, Refusal
from forge_actors.edges.git.integrating.merging import Maker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DATE = "@1700000000 +0000"


class Ground:
    """A repository with a branch `work` beside its branch `main`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "A. U. Thor")
        self.git("config", "user.email", "author@example.org")
        self.base = self.commit(text="".join(f"{n}\n" for n in range(20)), gone="x\n")

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.folder), *words],
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def commit(self, **files: str | None) -> str:
        for name, content in files.items():
            if content is None:
                self.git("rm", "-q", name)
            else:
                (self.folder / name).write_text(content)
        self.git("add", "--all")
        self.git("commit", "-q", "-m", f"change {' '.join(files)}")
        return self.git("rev-parse", "HEAD")

    def part(self) -> tuple[str, str]:
        """Both branches go on from the base, without a conflict."""
        self.git("checkout", "-q", "-b", "work")
        self.commit(new="new\n", gone=None)
        tip = self.commit(text="".join(f"{n}\n" for n in range(20)) + "end\n")
        self.git("checkout", "-q", "main")
        head = self.commit(text="start\n" + "".join(f"{n}\n" for n in range(20)))
        return head, tip

    def told(self, tip: str, **more: object) -> dict[str, Any]:
        return {
            "job": "the-job",
            "checkout": str(self.folder),
            "branch": "work",
            "base": self.base,
            "tip": tip,
            "mode": "auto",
            "date": DATE,
            "dry_run": False,
            "commit_first": False,
            **more,
        }

    def state(self) -> tuple[str, str]:
        return self.git("rev-parse", "HEAD"), self.git("status", "--porcelain")


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path / "app")


@pytest.fixture(params=[True, False], ids=["merge-tree", "files"])
def maker(request: pytest.FixtureRequest, ground: Ground) -> Callable[[], Maker]:
    def make() -> Maker:
        made = Maker(Git(str(ground.folder)), DATE, "Merge\n")
        if not request.param:
            made.merges_trees = False
        elif not made.merges_trees:
            pytest.skip("NOT RUN: git is older than 2.38")
        return made

    return make


@pytest.mark.parametrize("mode", ["auto", "merge", "cherry-pick"])
def test_both_sides_are_in_what_is_made(
    ground: Ground, maker: Callable[[], Maker], mode: str
) -> None:
    head, tip = ground.part()
    seen = ground.state()
    made = maker().make(head, tip, mode)
    assert made.how == ("cherry-pick" if mode == "cherry-pick" else "merge")
    parents = ground.git("log", "-1", "--format=%P", made.commit).split()
    if made.how == "merge":
        assert parents == [head, tip]
    else:
        assert ground.git("rev-parse", f"{made.commit}~2") == head
        assert ground.git("log", "-1", "--format=%s", made.commit) == "change text"
    lines = ground.git("show", f"{made.commit}:text").split()
    assert (lines[0], lines[-1], len(lines)) == ("start", "end", 22)
    files = ground.git("ls-tree", "--name-only", made.commit).split()
    assert files == ["new", "text"]
    assert ground.state() == seen


@pytest.mark.parametrize("mode", ["auto", "cherry-pick"])
def test_a_conflict_is_named_and_changes_nothing(
    ground: Ground, maker: Callable[[], Maker], mode: str
) -> None:
    ground.git("checkout", "-q", "-b", "work")
    tip = ground.commit(text="theirs\n")
    ground.git("checkout", "-q", "main")
    head = ground.commit(text="ours\n")
    seen = ground.state()
    with pytest.raises(Refusal, match="both sides changed the same in text"):
        maker().make(head, tip, mode)
    assert ground.state() == seen


def test_what_is_there_already_is_not_picked_again(
    ground: Ground, maker: Callable[[], Maker]
) -> None:
    ground.git("checkout", "-q", "-b", "work")
    ground.commit(new="new\n")
    tip = ground.commit(more="more\n")
    ground.git("checkout", "-q", "main")
    head = ground.commit(new="new\n")
    made = maker().make(head, tip, "cherry-pick")
    assert ground.git("rev-parse", f"{made.commit}~1") == head


def test_merges_are_not_picked(ground: Ground, maker: Callable[[], Maker]) -> None:
    head, tip = ground.part()
    ground.git("checkout", "-q", "-B", "work", tip)
    ground.git("merge", "-q", "--no-edit", head)
    merged = ground.git("rev-parse", "HEAD")
    ground.git("checkout", "-q", "main")
    head = ground.commit(other="other\n")
    with pytest.raises(Refusal, match="there are merges among its commits"):
        maker().make(head, merged, "cherry-pick")


def test_a_checkout_that_was_left_half_done_is_put_back(ground: Ground) -> None:
    """As git leaves it: some files written, one in part, the branch where it was."""
    _, tip = ground.part()
    ground.git("reset", "-q", "--hard", ground.base)
    before = ground.state()
    checkout = Checkout(str(ground.folder), mine=True)
    checkout._write_journal({"head": checkout.head, "commit": tip})
    (ground.folder / "gone").unlink()
    (ground.folder / "new").write_text("ne")
    (ground.folder / "text").write_text("")
    assert apply(ground.told(tip, dry_run=True)) == {"how": "later"}
    assert Checkout(str(ground.folder), mine=True).put_back
    assert ground.state() == before
    assert not (ground.folder / "new").exists()
    assert apply(ground.told(tip))["how"] == "fast-forward"
    assert ground.state() == (tip, "")


def test_what_a_person_changed_since_is_not_put_back(ground: Ground) -> None:
    _, tip = ground.part()
    ground.git("reset", "-q", "--hard", ground.base)
    checkout = Checkout(str(ground.folder), mine=True)
    checkout._write_journal({"head": checkout.head, "commit": tip})
    (ground.folder / "text").write_text("of a person\n")
    with pytest.raises(Refusal, match="was changed after an earlier apply"):
        apply(ground.told(tip))
    assert (ground.folder / "text").read_text() == "of a person\n"


def test_the_hooks_of_the_repository_do_not_run(ground: Ground) -> None:
    _, tip = ground.part()
    for name in ("post-merge", "post-checkout", "reference-transaction", "pre-commit"):
        hook = ground.folder / ".git" / "hooks" / name
        hook.write_text("#!/bin/sh\necho ran >> hooks-ran\nexit 1\n")
        hook.chmod(0o755)
    assert apply(ground.told(tip))["how"] == "merge"
    assert not (ground.folder / "hooks-ran").exists()
    assert ground.git("status", "--porcelain") == ""
