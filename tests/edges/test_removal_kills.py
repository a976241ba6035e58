"""A removal that is killed at any step: all content is found again, at each moment."""

from __future__ import annotations

import os
import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.removal import STEPS
from forge_actors.edges.cleanup.worktrees import receipts
from forge_actors.edges.cleanup.worktrees.removal import Removal
from tests.edges.removal_kit import BRANCH, JOB, Lab, git
from tests.other_user import as_user, place_of_a_user

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from forge_actors.domain.removal import Step

    Moments = tuple[str, ...]


def dirty(lab: Lab) -> set[str]:
    lab.write(lab.tree, {"a.txt": "staged\n"})
    git(lab.tree, "add", "a.txt")
    lab.write(lab.tree, {"a.txt": "dirty\n"})
    return {"staged\n", "dirty\n"}


def unpushed(lab: Lab) -> set[str]:
    lab.write(lab.tree, {"a.txt": "unpushed\n"})
    lab.commit(lab.tree, "unpushed")
    return {"unpushed\n"}


def untracked(lab: Lab) -> set[str]:
    lab.write(lab.tree, {"new/untracked.txt": "untracked\n"})
    return {"untracked\n"}


def ignored(lab: Lab) -> set[str]:
    lab.write(lab.tree, {"valuable.log": "valuable\n"})
    return {"valuable\n"}


def detached(lab: Lab) -> set[str]:
    git(lab.tree, "checkout", "-q", "--detach")
    lab.write(lab.tree, {"a.txt": "detached\n"})
    lab.commit(lab.tree, "detached")
    return {"detached\n"} | dirty(lab)


def rebasing(lab: Lab) -> set[str]:
    lab.write(lab.repo, {"a.txt": "theirs\n"})
    lab.commit(lab.repo, "theirs")
    lab.write(lab.tree, {"a.txt": "ours\n"})
    lab.commit(lab.tree, "ours")
    lab.write(lab.tree, {"b.txt": "second\n"})
    lab.commit(lab.tree, "second")
    git(lab.tree, "rebase", "main", ok=False)
    lab.write(lab.tree, {"a.txt": "resolving\n"})
    return {"ours\n", "second\n", "resolving\n"}


def everything(lab: Lab) -> set[str]:
    """All that a worktree on a branch may have, so that each step has work to do."""
    return unpushed(lab) | untracked(lab) | ignored(lab) | dirty(lab)


LOSSES: dict[str, Callable[[Lab], set[str]]] = {
    "dirty": dirty,
    "unpushed": unpushed,
    "untracked": untracked,
    "ignored": ignored,
    "detached": detached,
    "rebasing": rebasing,
    "everything": everything,
}
#: A kill before a step leaves what one within it does, and the note of the step before.
ALL: Moments = ("before", "within")
#: One kind each of what `everything` has: between them, killed within each step.
SINGLE = ("dirty", "unpushed", "untracked", "ignored")


def killed_at(lab: Lab, step: Step, moment: str) -> None:
    """Remove the worktree in a process that is killed before or after a step."""

    class Killed(Removal):
        def _take(self, taken: Step) -> None:
            if taken == step and moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            super()._take(taken)
            if taken == step and moment == "after":
                os.kill(os.getpid(), signal.SIGKILL)

        def _write(self, taken: Step, proof: str) -> None:
            # What was done is not written down, which is the middle of a step.
            if taken == step and moment == "within":
                os.kill(os.getpid(), signal.SIGKILL)
            super()._write(taken, proof)

    in_child(lambda: lab.remove(kind=Killed))


def in_child(act: Callable[[], object]) -> None:
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL, "it was not killed"


def killed_everywhere(
    place: Path, loss: str, moments: Moments, steps: Sequence[Step] = STEPS
) -> list[str]:
    """Kill the removal at each of these steps of it; where something was lost."""
    problems = []
    made = Lab(place)
    content = LOSSES[loss](made)
    copy = place.with_name(f"{place.name}.copy")
    shutil.copytree(place, copy, symlinks=True)
    for step in steps:
        # After a step is before the next one.
        for moment in (*moments, *(["after"] if step == STEPS[-1] else [])):
            shutil.rmtree(place)
            shutil.copytree(copy, place, symlinks=True)
            lab = Lab.found(place)
            killed_at(lab, step, moment)
            where = f"{moment} {step}"
            if lost := content - lab.contents():
                problems.append(f"killed {where}: {lost} is nowhere")
            outcome = lab.remove()
            if not outcome.gone or lab.tree.exists():
                problems.append(f"after a kill {where}: {outcome.reason}")
            if lost := content - lab.contents():
                problems.append(f"gone on {where}: {lost} is nowhere")
            lab.check_store()
            if lab.worktree.state != "removed":
                problems.append(f"after a kill {where}: {lab.worktree.state}")
    return problems


@pytest.mark.parametrize(
    ("loss", "moments"),
    [("everything", ALL), ("rebasing", ("within",)), ("detached", ("within",))],
)
def test_nothing_is_lost_wherever_it_is_killed(
    tmp_path: Path, loss: str, moments: Moments
) -> None:
    place = tmp_path / "lab"
    place.mkdir()
    assert killed_everywhere(place, loss, moments) == []


@pytest.mark.parametrize("loss", SINGLE)
def test_nothing_is_lost_where_that_is_all_there_is(tmp_path: Path, loss: str) -> None:
    place = tmp_path / "lab"
    place.mkdir()
    steps = STEPS[SINGLE.index(loss) :: len(SINGLE)]
    assert killed_everywhere(place, loss, ("within",), steps) == []


def test_nothing_of_another_user_is_lost_wherever_it_is_killed() -> None:
    with place_of_a_user() as around:

        def act() -> list[str]:
            place = around / "lab"
            place.mkdir()
            os.environ["HOME"] = str(around)
            return killed_everywhere(place, "everything", ("before",))

        assert as_user(act) == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"id": 3}', b"\xff", b"[]"])
def test_a_receipt_that_is_cut_off_is_not_believed(
    tmp_path: Path, content: bytes
) -> None:
    lab = Lab(tmp_path)
    wanted = dirty(lab)
    killed_at(lab, "aside", "after")
    path = lab.preserved / receipts.RECEIPT
    whole = path.read_bytes()
    path.write_bytes(content)
    outcome = lab.remove()
    # Nobody knows whose folder that is, so that it stays as it is.
    assert not outcome.gone
    assert wanted <= lab.contents()
    path.write_bytes(whole)
    assert lab.remove().gone
    assert wanted <= lab.contents()


def test_what_was_saved_and_is_damaged_stops_a_removal_that_goes_on(
    tmp_path: Path,
) -> None:
    lab = Lab(tmp_path)
    ignored(lab)
    killed_at(lab, "removing", "before")
    aside = lab.tree.with_name(f"{lab.tree.name}.removing")
    assert aside.exists()
    receipt = lab.preserved / receipts.RECEIPT
    text = receipt.read_text().replace('"step": "aside"', '"step": "removing"')
    receipt.write_text(text)
    (lab.preserved / "ignored.tar").write_bytes(b"")
    outcome = lab.remove()
    assert outcome.reason == "ignored.tar is not what was written"
    assert (aside / "valuable.log").exists()


def test_a_ref_that_somebody_deleted_stops_it_too(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    dirty(lab)
    killed_at(lab, "aside", "after")
    receipt = lab.preserved / receipts.RECEIPT
    text = receipt.read_text().replace('"step": "aside"', '"step": "removing"')
    receipt.write_text(text)
    git(lab.repo, "update-ref", "-d", f"refs/forge-actors/kept/{JOB}/checkpoint")
    assert not lab.remove().gone
    assert "dirty\n" in lab.contents()
    assert BRANCH in git(lab.repo, "branch", "--list", BRANCH)
