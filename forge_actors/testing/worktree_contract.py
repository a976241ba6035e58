"""What everything that makes worktrees keeps, as checks to run against it.

Call each of `CHECKS` with a `Ground`: where worktrees are made, and what people and
crashes can do there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import trio
from msgspec import structs

from forge_actors.domain.errors import WorktreeFailed
from forge_actors.domain.worktrees import Worktree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.ports import Worktrees
    from forge_actors.domain.worktrees import WorktreeWanted

    Check = Callable[["Ground"], Awaitable[None]]


class Ground(Protocol):
    """A repository with a commit, and a home."""

    def worktrees(self) -> Worktrees:
        """A new one, as a new runtime has it."""

    def wanted(self, job: str, **changes: object) -> WorktreeWanted: ...

    def head(self) -> str:
        """The commit that its checkout has as HEAD."""

    def branches(self) -> dict[str, str]:
        """The commits of the branches but the first one."""

    def files(self, wanted: WorktreeWanted) -> set[str] | None:
        """The files of a worktree; None if it is not there."""

    def make_branch(self, name: str) -> None:
        """Somebody makes a branch."""

    def switch(self, wanted: WorktreeWanted, name: str) -> None:
        """A job leaves its worktree at another, new branch."""

    def remove(self, wanted: WorktreeWanted) -> None:
        """Somebody removes the folder of a worktree."""

    async def cut_off(self, wanted: WorktreeWanted, known: Worktree) -> None:
        """A runtime dies while it makes this worktree."""


def known_of(wanted: WorktreeWanted, branch: str, commit: str) -> Worktree:
    """The record as it is saved before the folder is begun."""
    job, repo, path = wanted.job, wanted.repo, wanted.path
    return Worktree(job, repo, path, branch, 1.0, base_commit=commit)


async def planned(worktrees: Worktrees, wanted: WorktreeWanted) -> Worktree:
    plan = await worktrees.plan(wanted)
    return known_of(wanted, plan.branch, plan.base_commit)


async def refused(doing: Awaitable[object]) -> str:
    """Why it failed; it has to."""
    try:
        await doing
    except WorktreeFailed as error:
        return str(error)
    raise AssertionError("it did not fail")


async def check_a_plan_changes_nothing(ground: Ground) -> None:
    wanted = ground.wanted("job")
    plan = await ground.worktrees().plan(wanted)
    assert (plan.branch, plan.base_commit) == ("forge/job", ground.head())
    assert ground.branches() == {}
    assert ground.files(wanted) is None


async def check_a_worktree_is_made_once_however_often(ground: Ground) -> None:
    worktrees, wanted = ground.worktrees(), ground.wanted("job")
    known = await planned(worktrees, wanted)
    made = await worktrees.make(wanted, known)
    assert ground.branches() == {"forge/job": ground.head()}
    assert ground.files(wanted) == {"file", "folder/inner"}
    assert made.place.root == made.cwd == wanted.folder
    again = await ground.worktrees().make(wanted, known)
    assert again.place == made.place
    assert (await worktrees.enter(wanted, known)).place == made.place


async def check_what_was_cut_off_is_gone_on_with(ground: Ground) -> None:
    wanted = ground.wanted("job")
    known = await planned(ground.worktrees(), wanted)
    await ground.cut_off(wanted, known)
    await ground.worktrees().make(wanted, known)
    assert ground.branches() == {"forge/job": ground.head()}
    assert ground.files(wanted) == {"file", "folder/inner"}


async def check_what_was_cut_off_can_be_taken_back(ground: Ground) -> None:
    worktrees, wanted = ground.worktrees(), ground.wanted("job")
    known = await planned(worktrees, wanted)
    await worktrees.undo(wanted, known)  # of nothing
    await ground.cut_off(wanted, known)
    await worktrees.undo(wanted, known)
    assert ground.branches() == {}
    assert ground.files(wanted) is None
    await worktrees.undo(wanted, known)
    await worktrees.make(wanted, known)
    assert ground.branches() == {"forge/job": ground.head()}


async def check_a_branch_of_somebody_else_is_never_taken(ground: Ground) -> None:
    worktrees, wanted = ground.worktrees(), ground.wanted("job", pattern="mine")
    known = known_of(wanted, "mine", ground.head())
    ground.make_branch("mine")
    assert "branch mine" in await refused(worktrees.plan(wanted))
    # It may have been made after that was looked at.
    assert "branch mine" in await refused(worktrees.make(wanted, known))
    await worktrees.undo(wanted, known)
    assert ground.branches() == {"mine": ground.head()}


async def check_a_base_that_is_none_is_refused(ground: Ground) -> None:
    wanted = ground.wanted("job", base="nowhere")
    assert "nowhere" in await refused(ground.worktrees().plan(wanted))
    assert ground.branches() == {}


async def check_one_that_is_not_there_any_more_is_not_entered(ground: Ground) -> None:
    worktrees, wanted = ground.worktrees(), ground.wanted("job")
    known = await planned(worktrees, wanted)
    await worktrees.make(wanted, known)
    ready = structs.replace(known, state="ready")
    ground.remove(wanted)
    assert wanted.folder in await refused(worktrees.enter(wanted, ready))


async def check_one_at_another_branch_is_not_entered(ground: Ground) -> None:
    worktrees, wanted = ground.worktrees(), ground.wanted("job")
    known = await planned(worktrees, wanted)
    await worktrees.make(wanted, known)
    ready = structs.replace(known, state="ready")
    ground.switch(wanted, "other")
    assert "other" in await refused(worktrees.enter(wanted, ready))


async def check_many_are_made_at_once(ground: Ground) -> None:
    worktrees = ground.worktrees()
    all_wanted = [ground.wanted(f"job{number}") for number in range(12)]

    async def make(wanted: WorktreeWanted) -> None:
        await worktrees.make(wanted, await planned(worktrees, wanted))

    async with trio.open_nursery() as nursery:
        for wanted in all_wanted:
            nursery.start_soon(make, wanted)
    assert len(ground.branches()) == 12
    assert all(ground.files(wanted) for wanted in all_wanted)


CHECKS: tuple[Check, ...] = (
    check_a_plan_changes_nothing,
    check_a_worktree_is_made_once_however_often,
    check_what_was_cut_off_is_gone_on_with,
    check_what_was_cut_off_can_be_taken_back,
    check_a_branch_of_somebody_else_is_never_taken,
    check_a_base_that_is_none_is_refused,
    check_one_that_is_not_there_any_more_is_not_entered,
    check_one_at_another_branch_is_not_entered,
    check_many_are_made_at_once,
)
