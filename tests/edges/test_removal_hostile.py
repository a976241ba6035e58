"""A removal among links, mounts, files of others and programs that run in the tree."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from forge_actors.edges.cleanup.worktrees import occupants
from tests.edges.removal_kit import BRANCH, JOB, REPO, TREE, Lab, git
from tests.namespaces import UNSHARE
from tests.other_user import as_user, place_of_a_user

#: Of changes, removals and collections of garbage, drawn from one seed.
ROUNDS = 10

root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount, or to chown")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "precious").write_text("precious")
    return folder


def untouched(victim: Path) -> bool:
    return (victim / "precious").read_text() == "precious"


def test_a_link_in_it_is_removed_and_not_followed(lab: Lab, victim: Path) -> None:
    (lab.tree / "out").symlink_to(victim)
    (lab.tree / "out.log").symlink_to(victim / "precious")
    assert lab.remove().gone
    assert untouched(victim)
    assert git(lab.repo, "show", f"{BRANCH}:out") == str(victim)


def test_a_link_in_place_of_it_is_not_followed(lab: Lab, victim: Path) -> None:
    moved = lab.tree.with_name("moved")
    lab.tree.rename(moved)
    lab.tree.symlink_to(victim)
    lab.remove()
    assert untouched(victim)
    assert (moved / "a.txt").read_text() == "a\n"


@pytest.mark.parametrize("where", ["worktrees", f"worktrees/{REPO}"])
def test_a_link_in_place_of_a_folder_around_it_is_not_followed(
    lab: Lab, victim: Path, where: str
) -> None:
    folder = lab.home / where
    folder.rename(lab.home / "moved")
    inside = victim / Path(lab.path).relative_to(where)
    inside.mkdir(parents=True)
    (inside / "mine").write_text("mine")
    folder.symlink_to(victim)
    outcome = lab.remove()
    assert not outcome.gone
    assert "it is a link" in (outcome.reason or "")
    assert untouched(victim)
    assert (inside / "mine").read_text() == "mine"


def test_a_link_in_place_of_what_is_saved_is_not_followed(
    lab: Lab, victim: Path
) -> None:
    (lab.home / "preserved").symlink_to(victim)
    assert not lab.remove().gone
    assert untouched(victim)
    assert [path.name for path in victim.iterdir()] == ["precious"]
    assert lab.tree.exists()


def test_another_folder_in_place_of_it_is_not_removed_for_it(lab: Lab) -> None:
    lab.write(lab.tree, {"a.txt": "dirty\n"})
    aside = lab.tree.with_name(f"{JOB}.removing")
    aside.mkdir()
    (aside / "mine").write_text("mine")
    outcome = lab.remove()
    assert not outcome.gone
    assert "no clean-up has put it there" in (outcome.reason or "")
    assert (aside / "mine").read_text() == "mine"
    assert (lab.tree / "a.txt").read_text() == "dirty\n"


@root
def test_what_is_mounted_in_it_is_not_touched(tmp_path: Path) -> None:
    script = f"""\
import os, subprocess, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from tests.edges.removal_kit import Lab
place = Path({str(tmp_path)!r})
victim = place / "victim"
victim.mkdir()
(victim / "precious").write_text("precious")
lab = Lab(place)
inside = lab.tree / "mounted"
inside.mkdir()
subprocess.run(["mount", "--bind", victim, inside], check=True)
outcome = lab.remove()
assert not outcome.gone, outcome
assert "mounted" in outcome.reason, outcome
assert (victim / "precious").read_text() == "precious"
assert (lab.tree / "a.txt").exists()
subprocess.run(["umount", inside], check=True)
assert lab.remove().gone
"""
    done = subprocess.run(
        [*UNSHARE, "-m", sys.executable, "-c", script], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


def test_folders_of_ours_without_rights_are_no_hindrance() -> None:
    with place_of_a_user() as place:

        def act() -> list[object]:
            os.environ["HOME"] = str(place)
            lab = Lab(place)
            lab.write(lab.tree, {"d/x": "in it\n", "e/y.log": "ignored\n"})
            (lab.tree / "e" / "y.log").chmod(0)
            (lab.tree / "d").chmod(0o555)
            (lab.tree / "e").chmod(0)
            outcome = lab.remove()
            found = {"in it\n", "ignored\n"} <= lab.contents()
            return [outcome.gone, lab.tree.exists(), found]

        assert as_user(act) == [True, False, True]


@root
def test_what_another_user_has_put_there_stays_and_is_told_once(tmp_path: Path) -> None:
    with place_of_a_user() as place:

        def make() -> None:
            os.environ["HOME"] = str(place)
            lab = Lab(place)
            lab.write(lab.tree, {".gitignore": "*.log\ncache/\n"})
            lab.commit(lab.tree, "ignore")

        as_user(make)
        foreign = place / "home" / TREE / "theirs"
        foreign.mkdir(mode=0o755)
        (foreign / "x").write_text("of root\n")

        def act() -> list[object]:
            os.environ["HOME"] = str(place)
            lab = Lab.found(place)
            outcome = lab.remove()
            return [
                outcome.gone,
                lab.tree.exists(),
                outcome.reason is not None and "theirs" in outcome.reason,
                "of root\n" in lab.contents(),
                lab.worktree.reason == outcome.reason,
            ]

        assert as_user(act) == [True, False, True, True, True]


@root
def test_what_cannot_be_read_keeps_its_worktree() -> None:
    with place_of_a_user() as place:

        def make() -> None:
            os.environ["HOME"] = str(place)
            Lab(place)

        as_user(make)
        foreign = place / "home" / TREE / "secret"
        foreign.write_text("of root\n")
        foreign.chmod(0o600)

        def act() -> list[object]:
            os.environ["HOME"] = str(place)
            lab = Lab.found(place)
            outcome = lab.remove()
            return [outcome.gone, outcome.reason, lab.worktree.state]

        gone, reason, state = as_user(act)
        assert not gone
        assert "secret" in reason
        assert state == "ready"


def test_the_tree_that_we_run_from_is_never_removed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(occupants.sys, "prefix", str(lab.tree / ".venv"))
    outcome = lab.remove(force=True)
    assert not outcome.gone
    assert "this program runs from it" in (outcome.reason or "")
    assert lab.tree.exists()


def test_a_process_of_its_job_that_went_elsewhere_keeps_it(
    lab: Lab, tmp_path: Path
) -> None:
    with subprocess.Popen(
        ["cat"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "FORGE_JOB_ID": JOB},
    ) as child:
        assert f"process {child.pid}" in (lab.remove().reason or "")
        child.communicate()
    assert lab.remove().gone


def test_the_objects_of_the_repository_are_whole_through_it_all(tmp_path: Path) -> None:
    seed = 20
    chance = random.Random(seed)
    lab = Lab(tmp_path)
    main = lab.repo
    for turn in range(ROUNDS):
        if turn:
            git(main, "worktree", "add", "-q", "-B", BRANCH, str(lab.tree), "main")
            lab = Lab.found(tmp_path)
        for _ in range(chance.randrange(3)):
            lab.write(lab.tree, {f"{chance.randrange(9)}.txt": f"{chance.random()}\n"})
            if chance.random() < 0.5:
                lab.commit(lab.tree, "some work")
            if chance.random() < 0.2:
                git(main, "gc", "-q", "--prune=now")
        before = lab.contents()
        assert lab.remove().gone
        lab.check_store()
        lost = {text for text in before - lab.contents() if text.startswith("0.")}
        assert not lost, f"seed {seed}"
