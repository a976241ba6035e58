"""What becomes of an order that wants a worktree, and what is saved on the way."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec import structs

from forge_actors.actors.isolating import (
    IN_CHECKOUT,
    OTHERWISE,
    UNDO_SECONDS,
    Isolating,
)
from forge_actors.domain.admissions import AdmissionWanted, Admitted, NotAdmitted
from forge_actors.domain.errors import Refused, Unavailable, WorktreeFailed
from forge_actors.domain.inputs import INPUTS_MISSING, Input, InputsWanted
from forge_actors.domain.launch import Receipt, Secrets
from forge_actors.domain.worktrees import Isolation, LeftLocks
from forge_actors.testing.admissions import FakeAdmissions
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.inputs import FakeInputs
from forge_actors.testing.made_changes import job, repository
from forge_actors.testing.store import MemoryStore
from forge_actors.testing.worktrees import HEAD, FakeWorktrees
from tests.actors.kit import order_of
from tests.actors.test_isolating import FOLDER, WANTED, SomeLocks

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.domain.events import Event
    from forge_actors.domain.launch import LaunchOrder
    from forge_actors.domain.worktrees import MadeWorktree, Worktree, WorktreeWanted

pytestmark = pytest.mark.mock_clock

INPUTS = InputsWanted("/home/inputs/job.1", (Input("build", "build"),), 10, 10, 60.0)
ORDER = structs.replace(
    order_of("job"), wanted=WANTED, env={"A": "b", "GIT_DIR": "/x"}, attempt=2
)


class Trees(FakeWorktrees):
    """Worktrees that tell of more, and of which what was begun may have to stay."""

    def __init__(self) -> None:
        super().__init__()
        self.unlocked: tuple[str, ...] = ()
        self.set_aside: str | None = None
        self.stays: Exception | None = None
        self.away: Exception | None = None
        self.undone: list[tuple[str, str]] = []
        self.forever = False

    async def make(self, wanted: WorktreeWanted, known: Worktree) -> MadeWorktree:
        made = await super().make(wanted, known)
        if self.away is not None:
            raise self.away
        return self._told(made)

    async def enter(self, wanted: WorktreeWanted, known: Worktree) -> MadeWorktree:
        return self._told(await super().enter(wanted, known))

    async def undo(self, wanted: WorktreeWanted, known: Worktree) -> None:
        self.undone.append((wanted.job, known.state))
        if self.forever:
            await trio.sleep_forever()
        if self.stays is not None:
            raise self.stays
        await super().undo(wanted, known)

    def _told(self, made: MadeWorktree) -> MadeWorktree:
        return structs.replace(made, unlocked=self.unlocked, set_aside=self.set_aside)


class Case:
    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.clock = FakeClock()
        self.trees = Trees()
        self.inputs = FakeInputs()
        self.locks = SomeLocks(LeftLocks())
        self.admissions = FakeAdmissions()
        self.isolating = Isolating(
            *(store, self.trees, self.clock),
            *(self.locks, self.inputs, self.admissions),
        )

    @property
    def known(self) -> Worktree:
        known = self.store.worktree("job")
        assert known is not None
        return known

    async def events(self) -> list[Event]:
        await self.store.save([]).wait()
        kinds = ("worktree_", "lock_")
        found = self.store.durable.events
        return [event for event in found if event.kind.startswith(kinds)]

    async def told(self) -> list[tuple[str, dict[str, Any]]]:
        return [(event.kind, dict(event.data)) for event in await self.events()]

    def look(self, **receipt: Any) -> None:
        known: dict[str, Any] = {
            "ending": "exit",
            "exit_code": 1,
            "started_at": 5.0,
            "ended_at": 9.0,
        }
        told = Receipt("job", 1, 1, **{**known, **receipt})
        self.isolating.look_after("repo", told)


@asynccontextmanager
async def opened(**spec: Any) -> AsyncGenerator[Case, None]:
    async with MemoryStore().open() as store:
        added = job()
        added = structs.replace(added, spec=structs.replace(added.spec, **spec))
        await store.save([repository(), added]).wait()
        yield Case(store)


ABOUT = {"path": "worktrees/repo/job", "branch": "forge/job", "base_commit": HEAD}


async def test_all_of_what_was_made_is_saved_and_told() -> None:
    async with opened() as case:
        case.trees.unlocked, case.trees.set_aside = ("/x.lock",), "/aside"
        order = await case.isolating.prepare(ORDER)
        more = {"unlocked": ("/x.lock",), "set_aside": "/aside"}
        assert await case.told() == [
            ("worktree_making", ABOUT),
            ("worktree_made", {**ABOUT, **more}),
        ]
        for event in await case.events():
            assert (event.repo, event.job) == ("repo", "job")
            assert event.at == case.clock.now()
        known = case.known
        assert (known.id, known.repo, known.path) == (
            *("job", "repo"),
            "worktrees/repo/job",
        )
        assert (known.branch, known.base, known.base_commit) == (
            *("forge/job", None),
            HEAD,
        )
        assert (known.made_at, known.state) == (case.clock.wall(), "ready")
        assert order == structs.replace(
            ORDER,
            wanted=None,
            cwd=FOLDER,
            env={"A": "b", "GIT_CEILING_DIRECTORIES": "/home/worktrees"},
            worktree=order.worktree,
        )
        assert order.worktree is not None
        assert order.worktree.root == FOLDER


async def test_a_base_that_was_named_is_told_with_it() -> None:
    async with opened() as case:
        case.trees.checkouts.commits["main"] = "d" * 40
        order = structs.replace(ORDER, wanted=structs.replace(WANTED, base="main"))
        await case.isolating.prepare(order)
        about = {**ABOUT, "base": "main", "base_commit": "d" * 40}
        assert [data for _, data in await case.told()] == [about, about]
        assert (case.known.base, case.known.base_commit) == ("main", "d" * 40)


async def test_secrets_stay_as_they_are_but_for_those_of_git() -> None:
    async with opened() as case:
        kept = Secrets({"TOKEN": "t"})
        order = await case.isolating.prepare(structs.replace(ORDER, secrets=kept))
        assert order.secrets is kept
        mixed = Secrets({"TOKEN": "t", "GIT_DIR": "/x"})
        order = await case.isolating.prepare(structs.replace(ORDER, secrets=mixed))
        assert dict(order.secrets) == {"TOKEN": "t"}


async def test_one_that_is_ready_is_entered_and_locks_are_told() -> None:
    async with opened() as case:
        await case.isolating.prepare(ORDER)
        case.trees.unlocked = ("/x.lock", "/y.lock")
        order = await case.isolating.prepare(ORDER)
        assert (order.cwd, order.problem) == (FOLDER, None)
        told = (await case.told())[2:]
        assert told == [
            ("lock_removed", {"path": "/x.lock"}),
            ("lock_removed", {"path": "/y.lock"}),
        ]
        for event in (await case.events())[2:]:
            assert (event.repo, event.job) == ("repo", "job")
            assert event.at == case.clock.now()


async def test_a_job_goes_on_in_the_worktree_of_another_only_if_it_is_there() -> None:
    async with opened() as case:
        other = structs.replace(ORDER, job="next")
        order = await case.isolating.prepare(other)
        assert order.problem is not None
        assert "forge-actors worktree restore job" in order.problem
        assert OTHERWISE not in order.problem
        assert (order.wanted, order.no_worktree) == (None, False)
        assert await case.told() == []
        await case.isolating.prepare(ORDER)
        case.trees.unlocked = ("/x.lock",)
        order = await case.isolating.prepare(other)
        assert (order.cwd, order.problem) == (FOLDER, None)
        assert (await case.events())[-1].job == "next"


@pytest.mark.parametrize("error", [WorktreeFailed("no"), Unavailable("no")])
async def test_what_fails_is_taken_back_and_says_what_to_do(error: Exception) -> None:
    async with opened() as case:
        case.trees.away = error
        order = await case.isolating.prepare(ORDER)
        assert (order.problem, order.no_worktree) == (f"{error}{OTHERWISE}", False)
        assert order.wanted is None
        known = case.known
        assert (known.state, known.reason) == ("removed", str(error))
        assert known.removed_at == case.clock.wall()
        assert (await case.told())[1:] == [
            ("worktree_failed", {**ABOUT, "reason": str(error)})
        ]
        assert case.trees.undone == [("job", "making")]


async def test_one_that_was_isolated_to_wait_for_nobody_waits_for_the_checkout() -> (
    None
):
    async with opened(isolation=Isolation(claims=())) as case:
        case.trees.failure = "the disk is full"
        order = await case.isolating.prepare(ORDER)
        assert order.problem == f"the disk is full{IN_CHECKOUT}"
        assert order.no_worktree
        assert order.wanted is None


async def test_what_is_there_already_keeps_its_job_out_of_the_checkout() -> None:
    async with opened(isolation=Isolation(claims=())) as case:
        await case.isolating.prepare(ORDER)
        case.trees.checkouts.folders.clear()
        order = await case.isolating.prepare(ORDER)
        assert order.problem == f"{FOLDER} is not there"
        assert not order.no_worktree
        assert case.known.state == "ready"
        assert case.trees.undone == []


async def test_what_cannot_be_taken_back_stays_known_with_both_reasons() -> None:
    async with opened() as case:
        case.trees.failure, case.trees.stays = "full", WorktreeFailed("busy")
        await case.isolating.prepare(ORDER)
        known = case.known
        assert (known.state, known.removed_at) == ("making", None)
        assert known.reason == "full; what was begun of it is still there: busy"
        assert (await case.told())[-1][1]["reason"] == known.reason


async def test_giving_up_takes_no_longer_than_it_may() -> None:
    async with opened() as case, trio.open_nursery() as nursery:
        case.trees.failure, case.trees.forever = "full", True
        began = trio.current_time()
        # Who is stopped meanwhile takes it back all the same.
        nursery.cancel_scope.deadline = began + 1.0
        with trio.CancelScope(shield=True):
            await case.isolating.prepare(ORDER)
        assert trio.current_time() - began == UNDO_SECONDS


async def test_a_stop_does_not_end_the_taking_back() -> None:
    async with opened() as case:
        case.trees.held = trio.Event()
        with trio.move_on_after(5.0):
            await case.isolating.prepare(structs.replace(ORDER, inputs=INPUTS))
        assert case.inputs.folders == {INPUTS.folder}
        with trio.CancelScope() as scope:
            scope.cancel()
            order = structs.replace(ORDER, inputs=INPUTS)
            await case.isolating.give_up(order, "it was stopped")
        assert case.inputs.folders == set()
        assert (case.known.state, case.known.reason) == ("removed", "it was stopped")
        assert case.trees.checkouts.branches == {}


async def test_giving_up_leaves_what_is_of_another_or_ready_or_never_begun() -> None:
    async with opened() as case:
        await case.isolating.give_up(ORDER, "x")
        await case.isolating.give_up(structs.replace(ORDER, wanted=None), "x")
        assert case.store.worktree("job") is None
        await case.isolating.prepare(ORDER)
        await case.isolating.give_up(ORDER, "x")
        await case.isolating.give_up(structs.replace(ORDER, job="next"), "x")
        assert (case.known.state, case.known.reason) == ("ready", None)
        assert case.trees.undone == []


async def test_inputs_that_cannot_be_placed_are_why_nothing_begins() -> None:
    async with opened() as case:
        order = structs.replace(ORDER, inputs=INPUTS)
        case.inputs.problem = "job build kept no artifact"
        found = await case.isolating.prepare(order)
        assert (found.problem, found.problem_code) == (
            *("job build kept no artifact",),
            INPUTS_MISSING,
        )
        assert (found.wanted, found.inputs) == (None, INPUTS)
        alone = Isolating(case.store, case.trees, case.clock)
        found = await alone.prepare(order)
        assert found.problem_code == INPUTS_MISSING
        assert "no inputs can be placed" in (found.problem or "")
        case.inputs.problem = None
        plain = structs.replace(order, wanted=None)
        placed = structs.replace(INPUTS, placed=True)
        assert await case.isolating.prepare(plain) == structs.replace(
            plain, inputs=placed
        )


async def test_what_needs_neither_stays_as_it_is() -> None:
    async with opened() as case:
        plain = structs.replace(ORDER, wanted=None)
        assert await case.isolating.prepare(plain) is plain


class Refusing:
    """The port `Admissions`, which fails."""

    async def admit(self, order: LaunchOrder) -> Admitted | NotAdmitted:
        raise Refused(f"job {order.job} may not")


async def test_whoever_admits_is_asked_and_what_fails_is_why_not() -> None:
    async with opened() as case:
        order = structs.replace(ORDER, admission=AdmissionWanted("epic:1", 7))
        found = await case.isolating.admit(order)
        assert isinstance(found, Admitted)
        assert case.admissions.asked == [order]
        case.admissions.reason = "it was closed"
        assert await case.isolating.admit(order) == NotAdmitted("it was closed")
        for given, reason in (
            (None, "nobody here can admit it"),
            (Refusing(), "job job may not"),
        ):
            isolating = structs.replace(case.isolating, admissions=given)
            assert await isolating.admit(order) == NotAdmitted(reason)


@pytest.mark.parametrize(
    ("receipt", "looked"),
    [
        ({}, True),
        ({"exit_code": None, "signal": "SIGKILL"}, True),
        ({"exit_code": 0}, False),
        ({"exit_code": 0, "ending": "stop"}, True),
        ({"started_at": None}, False),
        ({"unfinished": "a process stays"}, False),
    ],
)
async def test_locks_are_looked_for_only_behind_what_ran_and_failed(
    receipt: dict[str, Any], looked: bool
) -> None:
    async with opened() as case:
        case.look(**receipt)
        assert case.locks.looked == ([("/", 5.0, 9.0)] if looked else [])


async def test_locks_that_were_left_are_told_of_the_job_that_left_them() -> None:
    async with opened() as case:
        case.locks.left = LeftLocks(("/a.lock", "/b.lock"), (("/c.lock", "older"),))
        case.look()
        assert await case.told() == [
            ("lock_removed", {"path": "/a.lock"}),
            ("lock_removed", {"path": "/b.lock"}),
            ("lock_kept", {"path": "/c.lock", "reason": "older"}),
        ]
        for event in await case.events():
            assert (event.repo, event.job) == ("repo", "job")
            assert event.at == case.clock.now()


async def test_the_next_attempt_of_an_isolated_job_looks_at_its_own() -> None:
    async with opened(isolation=Isolation()) as case:
        case.look()
        assert case.locks.looked == []


async def test_a_look_that_fails_keeps_no_exit_from_being_told() -> None:
    async with opened() as case:
        case.locks.left = None  # type: ignore[assignment]
        case.look()
        assert case.locks.looked == [("/", 5.0, 9.0)]
        structs.replace(case.isolating, locks=None).look_after(
            "repo", Receipt("job", 1, 1, "exit", 9.0, started_at=5.0, exit_code=1)
        )
        assert await case.told() == []
