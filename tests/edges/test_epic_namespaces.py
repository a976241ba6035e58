"""The records of EPIC runs, on a real disk and in memory alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from forge_actors.domain.epic import places
from forge_actors.domain.epic.namespace import PLAN_OWNER, Namespace, classify
from forge_actors.domain.epic.records import StopRequest, checked
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.testing.epic.namespaces_contract import CHECKS
from forge_actors.testing.epic.records import (
    EXPECTED,
    made_assignment,
    made_binding,
    made_claim,
    made_closed,
    made_scheduler,
    made_state,
)
from forge_actors.testing.epic.worlds import (
    ODD,
    bound,
    claimed,
    found,
    read,
    saved,
)
from tests.edges.epic_records_kit import world

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.epic.namespace import Expected
    from forge_actors.testing.epic.worlds import World

__all__ = ["world"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_implementation_keeps_the_contract(
    check: Callable[[World], None], world: World
) -> None:
    check(world)


def test_a_folder_with_no_more_than_a_lock_is_none(world: World) -> None:
    assert found(world).kind == "absent"
    world.put(places.run_lock(12), b"")
    assert found(world).kind == "absent"
    world.put(places.log(12, 1), b"hello")
    assert found(world).kind == "fresh"
    assert read(world).binding is None


def test_work_begins_anew_where_no_state_was_saved(world: World) -> None:
    bound(world)
    assert (found(world).kind, found(world).open_claim) == ("fresh", None)
    claim = claimed(world, made_claim(12))
    assert (found(world).kind, found(world).open_claim) == ("fresh", claim)
    claimed(world, made_claim(12, closed=made_closed()))
    assert (found(world).kind, found(world).open_claim) == ("fresh", None)


@pytest.mark.parametrize("phase", ["prepare", "implement", "check", "review"])
def test_work_goes_on_from_a_state_between_two_phases(phase: Any, world: World) -> None:
    bound(world)
    saved(world, made_state(12, phase))
    state = read(world).saved
    assert state is not None
    now = found(world)
    assert (now.kind, now.state_ref, now.settlement) == ("resumable", state.ref, None)
    assert now.open_claim is None
    claim = claimed(world, made_claim(12))
    assert (found(world).kind, found(world).open_claim) == ("resumable", claim)


def test_a_worker_that_went_on_has_a_later_state(world: World) -> None:
    bound(world)
    saved(world, made_state(12, "implement", second=30))
    claim = claimed(world, made_claim(12, state_ref=read(world).state_ref))
    for second in (30, 31):  # the clock may stand still
        saved(world, made_state(12, "review", second=second))
        now = found(world)
        assert (now.kind, now.open_claim) == ("resumable", claim)


@pytest.mark.parametrize("phase", ["ready_for_merge", "done", "blocked", "failed"])
def test_work_that_came_to_rest_is_settled(phase: Any, world: World) -> None:
    bound(world)
    saved(world, made_state(12, phase))
    assert (found(world).kind, found(world).settlement) == ("settled", phase)
    assert found(world).open_claim is None
    claim = claimed(world, made_claim(12))
    assert (found(world).kind, found(world).open_claim) == ("settled", claim)


def _no_owner(world: World) -> None:
    saved(world, made_state(12))


def _claims_without_owner(world: World) -> None:
    claimed(world, made_claim(12))


def _owner_of_another(world: World) -> None:
    world.put(places.binding(12), checked(made_binding(12, number=13)))


def _owner_elsewhere(world: World) -> None:
    world.put(places.binding(12), checked(made_binding(12, repository_id=102)))


def _junk(place: Any) -> Callable[[World], None]:
    def put(world: World) -> None:
        bound(world)
        world.put(place, b'{"schema":1}')

    return put


def _later_schema(world: World) -> None:
    bound(world)
    state = checked(made_state(12))
    world.put(places.state(12), state.replace(b'"schema": 1', b'"schema": 2'))


def _state_of_another(world: World) -> None:
    bound(world)
    saved(world, made_state(12, number=13))


def _state_about(url: str) -> Callable[[World], None]:
    def put(world: World) -> None:
        bound(world)
        saved(world, made_state(12, url=url))

    return put


def _state_put_back(world: World) -> None:
    bound(world)
    saved(world, made_state(12, "review", second=30))
    claimed(world, made_claim(12, state_ref=read(world).state_ref))
    assert found(world).kind == "resumable"
    saved(world, made_state(12, "implement", second=20))


def _state_of_another_run(world: World) -> None:
    bound(world)
    saved(world, made_state(12, "review", second=30))
    claimed(world, made_claim(12, state_ref=read(world).state_ref))
    saved(world, made_state(12, "review", second=40, run_id="r-00000002"))


def _state_gone(world: World) -> None:
    bound(world)
    ref = made_state(12)
    saved(world, ref)
    claimed(world, made_claim(12, 1, state_ref=read(world).state_ref))
    world.plant(places.state(12), "a FIFO")
    assert found(world).kind == "uncertain"
    assert world.faults.remove(places.state(12))


def _gap(world: World) -> None:
    bound(world)
    claimed(world, made_claim(12, 1, closed=made_closed()))
    claimed(world, made_claim(12, 3))


def _no_first(world: World) -> None:
    bound(world)
    claimed(world, made_claim(12, 2))


def _two_open(world: World) -> None:
    bound(world)
    claimed(world, made_claim(12, 1))
    claimed(world, made_claim(12, 2))


def _open_below_a_closed_one(world: World) -> None:
    bound(world)
    claimed(world, made_claim(12, 1))
    claimed(world, made_claim(12, 2, closed=made_closed()))


def _resumes_nothing(world: World) -> None:
    bound(world)
    claimed(world, structs.replace(made_claim(12, 1), kind="resume"))


def _names_another(world: World) -> None:
    bound(world)
    first = claimed(world, made_claim(12, 1))
    wrong = made_claim(12, 1, claim_id="c-another0").ref
    assert wrong != first.ref
    claimed(world, made_claim(12, 2, supersedes=wrong))


def _same_id(world: World) -> None:
    bound(world)
    first = claimed(world, made_claim(12, 1, closed=made_closed()))
    claimed(world, made_claim(12, 2, claim_id=first.claim_id))


def _twice_the_same_generation(world: World) -> None:
    bound(world)
    claimed(world, made_claim(12, 1, closed=made_closed()))
    world.put(places.claim(12, 2), checked(made_claim(12, 1, claim_id="c-another0")))


def _odd_name(name: str) -> Callable[[World], None]:
    def put(world: World) -> None:
        bound(world)
        world.put((*places.claims(12), name), checked(made_claim(12, 1)))

    return put


def _claim_of_another(world: World) -> None:
    bound(world)
    world.put(places.claim(12, 1), checked(made_claim(13, 1)))


WRONG: dict[str, tuple[Callable[[World], None], str]] = {
    "a state alone": (_no_owner, "nothing that says whose it is"),
    "claims alone": (_claims_without_owner, "nothing that says whose they are"),
    "number": (_owner_of_another, "issue 13"),
    "repository": (_owner_elsewhere, "id 102; this one has 101"),
    "binding": (_junk(places.binding(12)), "binding.json"),
    "state": (_junk(places.state(12)), "state.json"),
    "claim": (_junk(places.claim(12, 1)), "1.json"),
    "later schema": (_later_schema, "schema"),
    "other state": (_state_of_another, "another issue"),
    "other number": (
        _state_about("https://github.com/octo/demo/issues/13"),
        "octo/demo#13",
    ),
    "other name": (
        _state_about("https://github.com/octo/demos/issues/12"),
        "octo/demos#12",
    ),
    "no issue": (_state_about("https://github.com/octo/demo/pull/12"), "no issue"),
    "older state": (_state_put_back, "older"),
    "other run": (_state_of_another_run, "another run"),
    "no state": (_state_gone, "is gone"),
    "gap": (_gap, "claim 2 is missing"),
    "no first": (_no_first, "claim 1 is missing"),
    "two open": (_two_open, "claim 1 is open although 2 is there"),
    "left open": (_open_below_a_closed_one, "claim 1 is open although 2 is there"),
    "resumes nothing": (_resumes_nothing, "not by the state it names"),
    "names another": (_names_another, "takes over from one that is not there"),
    "same id": (_same_id, "same id"),
    "same generation": (_twice_the_same_generation, "not the claim 2"),
    "leading zero": (_odd_name("01.json"), "is no claim"),
    "zero": (_odd_name("0.json"), "is no claim"),
    "junk": (_odd_name("1.json~"), "is no claim"),
    "other claim": (_claim_of_another, "something else than the binding"),
}


@pytest.mark.parametrize(("plant", "told"), WRONG.values(), ids=WRONG)
def test_what_is_known_to_be_wrong_is_uncertain(
    plant: Callable[[World], None], told: str, world: World
) -> None:
    plant(world)
    now = found(world)
    assert now.kind == "uncertain"
    assert told in now.detail
    assert now.settlement is None


@pytest.mark.parametrize("place", ["binding", "state", "claim"])
@pytest.mark.parametrize("what", ODD)
def test_what_is_no_file_is_uncertain_and_waits_for_nobody(
    what: str, place: str, world: World
) -> None:
    bound(world)
    where = {
        "binding": places.binding(12),
        "state": places.state(12),
        "claim": places.claim(12, 1),
    }[place]
    world.plant(where, what)
    assert found(world).kind == "uncertain"
    assert where[-1] in found(world).detail


def _knowing(issue: int, its_id: int) -> Expected:
    return structs.replace(EXPECTED, issue_ids={issue: its_id})


def test_only_a_known_mismatch_counts(world: World) -> None:
    bound(world)
    saved(world, made_state(12))
    namespace: Namespace = read(world)

    def kind(expected: Expected) -> str:
        return classify(namespace, expected).kind

    assert kind(EXPECTED) == "resumable"
    assert kind(_knowing(12, 9012)) == "resumable"
    assert kind(_knowing(13, 1)) == "resumable"
    assert kind(_knowing(12, 9013)) == "uncertain"
    assert "9013" in classify(namespace, _knowing(12, 9013)).detail


def test_a_repository_may_be_renamed(world: World) -> None:
    bound(world)
    saved(world, made_state(12))
    renamed = structs.replace(EXPECTED, owner="Octopus", name="Demonstration")
    assert classify(read(world), renamed).kind == "resumable"
    saved(
        world, made_state(12, url="https://github.com/octopus/demonstration/issues/12")
    )
    assert classify(read(world), renamed).kind == "resumable"
    assert found(world).kind == "uncertain"


def test_an_issue_of_a_plan_is_named_by_its_file(world: World) -> None:
    plan = structs.replace(EXPECTED, owner=PLAN_OWNER, name="importer")
    bound(world)
    for url, kind in (
        ("importer.toml#12", "resumable"),
        ("importer.toml#13", "uncertain"),
        ("importer.toml#112", "uncertain"),
        ("importer.toml", "uncertain"),
    ):
        saved(world, made_state(12, url=url))
        assert classify(read(world), plan).kind == kind
        assert found(world).kind == "uncertain"


def test_of_two_open_claims_the_one_that_took_over_counts(world: World) -> None:
    bound(world)
    first = claimed(world, made_claim(12, 1))
    second = claimed(world, made_claim(12, 2, supersedes=first.ref))
    assert (found(world).kind, found(world).open_claim) == ("fresh", second)
    assert read(world).outrun == (first,)


def test_issues_of_a_plan_are_kept_apart(world: World) -> None:
    bound(world)
    saved(world, made_state(12))
    plan = FileNamespaces(world.faults, ("plans", "importer-1234"))
    assert plan.issues().issues == ()
    assert plan.look(12) == Namespace(12)
    lock = world.locks.take_run(12)
    plan.bind(lock, made_binding(12))
    plan.assign(lock, made_assignment(12))
    plan.open_claim(lock, made_claim(12))
    plan.write_scheduler(made_scheduler())
    plan.write_stop(7, StopRequest(mode="now"))
    lock.close()
    above = ("forge-actors", "plans", "importer-1234")
    new = [each for each in world.files() if each[: len(above)] == above]
    assert sorted(each[len(above) :] for each in new) == [
        ("epics", "7", "scheduler.json"),
        ("epics", "7", "stop.json"),
        ("issues", "12", "binding.json"),
        ("issues", "12", "claims", "1.json"),
        ("issues", "12", "issue.json"),
    ]
    assert plan.issues().issues == (12,)
    assert found(world).kind == "resumable"
    assert world.namespaces.read_stop(7).kind == "none"


def test_too_many_claims_are_not_read(world: World) -> None:
    bound(world)
    for generation in range(1, 1002):
        world.put(places.claim(12, generation), b"")
    assert "more than 1000" in found(world).detail
