"""What is made of what earlier runs left, on a real disk and in memory alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.domain.epic import places
from forge_actors.domain.epic.reconciling import MAX_PROBLEMS, reconcile
from forge_actors.domain.epic.records import checked
from forge_actors.edges.epic.locks import FileLocks
from forge_actors.edges.machine import lives, own_identity
from forge_actors.testing.epic.records import (
    EPIC,
    EXPECTED,
    OTHER_EPIC,
    made_binding,
    made_claim,
    made_closed,
    made_scheduler,
    made_state,
    moment,
)
from forge_actors.testing.epic.worlds import (
    ODD,
    bound,
    claimed,
    found,
    read,
    saved,
)
from tests.edges.epic_records_kit import DiskWorld, world

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from pathlib import Path

    from forge_actors.domain.epic.reconciling import Reconciled, Report
    from forge_actors.domain.epic.records import Claim
    from forge_actors.testing.epic.locks import FakeLocks
    from forge_actors.testing.epic.worlds import World

__all__ = ["world"]


def reconciled(world: World, only: Collection[int] | None = None) -> Reconciled:
    return reconcile(
        world.namespaces, world.locks, EPIC, EXPECTED, only, now=moment(200)
    )


def report(world: World) -> Report | None:
    done = reconciled(world)
    assert done.admissible
    assert len(done.reports) <= 1
    return done.reports[0] if done.reports else None


def claim_now(world: World) -> Claim:
    claim = read(world).latest
    assert claim is not None
    return claim


def test_where_nothing_is_there_is_nothing_to_do(world: World) -> None:
    assert reconciled(world).admissible
    assert reconciled(world, only={12}).reports == ()
    world.put(places.run_lock(12), b"")
    world.put(places.log(13, 1), b"")
    assert reconciled(world).reports == ()
    assert set(world.files()) == {places.run_lock(12), places.log(13, 1)}


def test_a_claim_without_a_state_is_abandoned(world: World) -> None:
    bound(world)
    now = report(world)
    assert now is not None
    assert (now.issue, now.classification, now.fact) == (12, "fresh", None)
    assert now.closed is None
    claimed(world, made_claim(12))
    now = report(world)
    assert now is not None
    assert (now.classification, now.fact, now.open_claim) == ("fresh", None, None)
    assert now.closed == claim_now(world)
    assert now.closed.closed is not None
    assert now.closed.closed.classification == "abandoned"
    assert now.closed.closed.at == moment(200)


def test_a_claim_of_settled_work_is_settled(world: World) -> None:
    bound(world)
    saved(world, made_state(12, "ready_for_merge"))
    now = report(world)
    assert now is not None
    assert (now.classification, now.fact) == ("settled", "settled-namespace")
    claimed(world, made_claim(12))
    now = report(world)
    assert now is not None
    assert now.fact == "settled-namespace"
    assert now.closed is not None
    closed = claim_now(world).closed
    assert closed is not None
    assert (closed.classification, closed.settlement) == ("settled", "ready_for_merge")


def test_a_claim_of_work_that_can_go_on_stays_open(world: World) -> None:
    bound(world)
    saved(world, made_state(12))
    now = report(world)
    assert now is not None
    assert (now.classification, now.open_claim, now.fact) == ("resumable", None, None)
    claim = claimed(world, made_claim(12))
    before = world.files()
    now = report(world)
    assert now is not None
    assert (now.classification, now.open_claim, now.fact) == ("resumable", claim, None)
    assert world.files() == before


def test_what_is_uncertain_is_not_touched(world: World) -> None:
    bound(world)
    first = claimed(world, made_claim(12))
    claimed(world, made_claim(12, 2, supersedes=first.ref))
    world.put(places.state(12), b"{}")
    before = world.files()
    now = report(world)
    assert now is not None
    assert (now.fact, now.closed, now.live) == ("uncertain", None, False)
    assert "state.json" in now.detail
    assert world.files() == before
    saved(world, made_state(13), issue=13)  # whose it is nobody knows
    facts = {each.issue: each.fact for each in reconciled(world).reports}
    assert facts == {12: "uncertain", 13: "uncertain"}


def test_what_somebody_has_is_live_and_not_read(world: World) -> None:
    bound(world)
    world.put(places.state(12), b"{}")
    lock = world.locks.take_run(12)
    now = report(world)
    assert now is not None
    assert (now.live, now.fact, now.classification) == (True, None, None)
    lock.close()
    now = report(world)
    assert now is not None
    assert (now.live, now.fact) == (False, "uncertain")


def test_a_lock_that_cannot_be_taken_is_uncertain(world: World) -> None:
    bound(world)
    locks: FakeLocks = world.locks  # type: ignore[assignment]
    locks.problems[12] = "no such device"
    now = report(world)
    assert now is not None
    assert now.fact == "uncertain"


def test_what_cannot_be_put_right_is_uncertain(world: World) -> None:
    bound(world)
    claim = claimed(world, made_claim(12))
    world.faults.fail_at(1)
    now = report(world)
    assert now is not None
    assert now.fact == "uncertain"
    assert "no space left" in now.detail
    assert claim_now(world) == claim
    assert not world.locks.is_busy(12)


def test_issues_of_another_epic_are_none_of_this_one(world: World) -> None:
    world.put(places.binding(12), checked(made_binding(12, epic=OTHER_EPIC)))
    claimed(world, made_claim(12, epic=OTHER_EPIC))
    before = world.files()
    assert report(world) is None
    assert world.files() == before
    locks: FakeLocks = world.locks  # type: ignore[assignment]
    assert locks.kernel.log == []


def test_only_those_that_are_asked_for_are_locked(world: World) -> None:
    for issue in (2, 3, 4):
        bound(world, issue)
    locks: FakeLocks = world.locks  # type: ignore[assignment]
    done = reconciled(world, only={3, 99})
    assert [each.issue for each in done.reports] == [3]
    assert locks.kernel.log == ["+3", "-3"]
    assert [each.issue for each in reconciled(world).reports] == [2, 3, 4]
    assert locks.kernel.log[2:] == ["+2", "-2", "+3", "-3", "+4", "-4"]


def test_a_claim_that_was_taken_over_from_is_closed(world: World) -> None:
    bound(world)
    first = claimed(world, made_claim(12))
    second = claimed(world, made_claim(12, 2, supersedes=first.ref))
    saved(world, made_state(12))
    now = report(world)
    assert now is not None
    assert now.open_claim == second
    ended = read(world).claims[0].closed
    assert ended is not None
    assert ended.classification == "superseded"
    assert second.invocation_id in ended.detail
    assert read(world).outrun == ()


def _scheduler(content: bytes) -> Callable[[World], None]:
    return lambda world: world.put(places.scheduler(7), content)


def _odd(place: tuple[str, ...], what: str) -> Callable[[World], None]:
    return lambda world: world.plant(place, what)


def _put(place: tuple[str, ...], content: bytes) -> Callable[[World], None]:
    return lambda world: world.put(place, content)


def _issues_are(what: str) -> Callable[[World], None]:
    def plant(world: World) -> None:
        """In the place of the folder that is there."""
        assert world.faults.move(places.ISSUES, "gone")
        world.plant(places.ISSUES, what)

    return plant


def _twice(world: World) -> None:
    world.put(places.binding(13), checked(made_binding(13, id=9012)))


def _bound_elsewhere(world: World) -> None:
    binding = made_binding(13, repository_id=102, epic=OTHER_EPIC)
    world.put(places.binding(13), checked(binding))


ELSEWHERE = checked(made_scheduler(repository_id=102))
LATER = checked(made_scheduler()).replace(b'"schema": 1', b'"schema": 2')
PROBLEMS: dict[str, tuple[Callable[[World], None], str]] = {
    "scheduler empty": (_scheduler(b""), "scheduler.json"),
    "scheduler junk": (_scheduler(b"{}"), "scheduler.json"),
    "scheduler later": (_scheduler(LATER), "scheduler.json"),
    "scheduler elsewhere": (_scheduler(ELSEWHERE), "id 102; this one has 101"),
    **{
        f"scheduler {what}": (_odd(places.scheduler(7), what), "scheduler.json")
        for what in ODD
    },
    "issues a link": (_issues_are("a link"), "cannot be listed"),
    "issues a FIFO": (_issues_are("a FIFO"), "cannot be listed"),
    "issues a file": (_issues_are("a hard link"), "cannot be listed"),
    **{
        f"issue {name!r}": (_put((*places.ISSUES, name, "run.lock"), b""), name.strip())
        for name in ("012", "+12", "twelve", "12 ", "0", "١٢", "-1", "2147483648")
    },
    "issue a file": (_put((*places.ISSUES, "13"), b""), "issues/13 is no folder"),
    "issue a link": (_odd((*places.ISSUES, "13"), "a link"), "issues/13 is no folder"),
    "binding junk": (_put(places.binding(13), b"{}"), "binding of issue 13"),
    "binding a FIFO": (_odd(places.binding(13), "a FIFO"), "binding of issue 13"),
    "binding elsewhere": (_bound_elsewhere, "issue 13 is bound to the repository"),
    "bound twice": (_twice, "issues 12 and 13 are both bound to the id 9012"),
}


@pytest.mark.parametrize(("plant", "told"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_nobody_can_tell_whose_it_is_lets_nothing_be_admitted(
    plant: Callable[[World], None], told: str, world: World
) -> None:
    bound(world)
    claimed(world, made_claim(12))  # which would be closed
    plant(world)
    before = world.files()
    for only in (None, {99}):
        done = reconciled(world, only)
        assert not done.admissible
        assert done.reports == ()
        assert len(done.problems) == 1
        assert told.encode("ascii", "backslashreplace").decode() in done.problems[0]
    assert world.files() == before


def test_a_run_that_was_told_of_is_no_problem(world: World) -> None:
    world.namespaces.write_scheduler(made_scheduler())
    world.put((*places.scheduler(7)[:-1], "scheduler.json.aside"), b"")
    bound(world)
    assert reconciled(world).admissible
    known = structs.replace(EXPECTED, issue_ids={12: 1})
    done = reconcile(world.namespaces, world.locks, EPIC, known, now=moment(1))
    assert [each.fact for each in done.reports] == ["uncertain"]


def test_of_many_problems_some_are_told(world: World) -> None:
    for number in range(MAX_PROBLEMS + 5):
        world.put((*places.ISSUES, f"0{number}\x1b[2J", "run.lock"), b"")
    problems = reconciled(world).problems
    assert len(problems) == MAX_PROBLEMS + 1
    assert problems[-1] == "and 5 problems more"
    assert "\x1b" not in "".join(problems)
    assert found(world).kind == "absent"


def test_closed_claims_stay_as_they_are(world: World) -> None:
    bound(world)
    claimed(world, made_claim(12, closed=made_closed()))
    before = world.files()
    now = report(world)
    assert now is not None
    assert (now.classification, now.closed) == ("fresh", None)
    assert world.files() == before


def test_with_the_locks_of_the_kernel_too(tmp_path: Path) -> None:
    world = DiskWorld(tmp_path)
    ours, others = (
        FileLocks(world.root, own_identity(), lives, check=lambda root: None)
        for _ in range(2)
    )
    for issue in (12, 13):
        bound(world, issue)
        claimed(world, made_claim(issue))
    held = others.take_run(13)
    namespaces = world.namespaces
    first = reconcile(namespaces, ours, EPIC, EXPECTED, now=moment(1)).reports
    assert [(each.live, each.closed is None) for each in first] == [
        (False, False),
        (True, True),
    ]
    held.close()
    then = reconcile(namespaces, ours, EPIC, EXPECTED, {13, 14}, now=moment(2)).reports
    assert [(each.issue, each.live) for each in then] == [(13, False)]
    assert then[0].closed is not None
    assert not world.path(places.namespace(14)).exists()
    world.root.close()
