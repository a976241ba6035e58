"""A link, or another folder, in place of one that a removal visits, at each step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.removal import STEPS
from forge_actors.edges.cleanup.worktrees.removal import Removal
from tests.edges.removal_kit import JOB, REPO, TREE, Lab

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.removal import Step

#: What is exchanged, by its place in the home.
PLACES = {
    "the worktree": TREE,
    "the worktree aside": f"{TREE}.removing",
    "the folder of its repository": f"worktrees/{REPO}",
    "the folder of all worktrees": "worktrees",
    "what is saved of it": f"preserved/{JOB}",
    "what is saved of all": "preserved",
    "what is removed": "removing",
}
ASIDE = STEPS.index("removing")
#: When a place is there that is not there all the time.
STEPS_OF = {
    "the worktree": STEPS[:ASIDE],
    "the worktree aside": STEPS[ASIDE : ASIDE + 1],
    "what is removed": STEPS[ASIDE + 1 :],
}


def everything(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("what", "step"),
    [(what, step) for what in PLACES for step in STEPS_OF.get(what, STEPS)],
)
def test_nothing_outside_changes_and_nothing_is_lost(
    tmp_path: Path, what: str, step: Step
) -> None:
    lab = Lab(tmp_path)
    lab.write(lab.tree, {"a.txt": "dirty\n", "new": "new\n", "x.log": "ignored\n"})
    victim = tmp_path / "victim"
    # It has whatever the removal could look for in it.
    for place in (*PLACES.values(), JOB, f"{REPO}/{JOB}", f"{JOB}.removing", "."):
        lab.write(victim / place, {"a.txt": "theirs\n", "x/y": "theirs\n"})
    before = everything(victim)
    place, moved = lab.home / PLACES[what], tmp_path / "moved"
    exchanged = []

    class Swapped(Removal):
        def _take(self, taken: Step) -> None:
            if taken == step and not exchanged:
                place.rename(moved)
                place.symlink_to(victim)
                exchanged.append(taken)
            super()._take(taken)

    lab.remove(kind=Swapped)
    assert exchanged
    assert everything(victim) == before
    if moved.exists():
        place.unlink(missing_ok=True)
        if not place.exists():
            moved.rename(place)
    assert {"dirty\n", "new\n", "ignored\n"} <= lab.contents()
    lab.check_store()
    lab.remove()
    assert {"dirty\n", "new\n", "ignored\n"} <= lab.contents()
    assert everything(victim) == before
