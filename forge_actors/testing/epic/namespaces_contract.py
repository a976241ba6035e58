"""What every implementation of the port `Namespaces` must keep to."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.epic import places
from forge_actors.domain.epic.claims import by_state
from forge_actors.domain.epic.namespace import Namespace, classify
from forge_actors.domain.epic.records import (
    MAX_ASSIGNMENT,
    MAX_BODY,
    Assignment,
    StopRequest,
    checked,
    decode,
)
from forge_actors.testing.epic.records import (
    EPIC,
    EXPECTED,
    OTHER_EPIC,
    made_assignment,
    made_binding,
    made_claim,
    made_closed,
    made_scheduler,
    made_state,
    made_worker,
    moment,
)
from forge_actors.testing.epic.worlds import (
    ODD,
    bound,
    claimed,
    found,
    read,
    refused,
    saved,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forge_actors.testing.epic.worlds import World


def check_nothing_is_kept_at_first(world: World) -> None:
    namespaces = world.namespaces
    assert (namespaces.issues().issues, namespaces.issues().problems) == ((), ())
    assert namespaces.look(12) == Namespace(12)
    assert namespaces.binding(12) is None
    assert namespaces.read_scheduler(7) is None
    assert namespaces.read_stop(7).kind == "none"
    assert namespaces.standalone() is None
    assert not namespaces.remove_stop(7)
    assert namespaces.move_scheduler_aside(7, moment(0)) is None
    assert world.files() == {}


def check_a_namespace_is_bound_once(world: World) -> None:
    lock = world.locks.take_run(12)
    binding = made_binding(12)
    world.namespaces.bind(lock, binding)
    before = world.files()
    with refused():
        world.namespaces.bind(lock, binding)
    with refused():
        world.namespaces.bind(lock, made_binding(12, epic=OTHER_EPIC))
    assert world.files() == before
    lock.close()
    assert world.namespaces.binding(12) == binding
    assert world.namespaces.issues().issues == (12,)
    assert read(world).binding == binding


def check_a_worker_is_told_its_work_anew_each_time(world: World) -> None:
    lock, place = world.locks.take_run(12), places.assignment(12)
    for body in ("Do it.", "é\U0001f980" * (MAX_BODY // 2), "Do something else."):
        told = made_assignment(12, body)
        world.namespaces.assign(lock, told)
        assert decode(Assignment, world.files()[place], MAX_ASSIGNMENT) == told
    before = world.files()
    with refused():
        world.namespaces.assign(lock, structs.replace(told, body="x" * (MAX_BODY + 1)))
    assert world.files() == before
    lock.close()
    assert found(world).kind == "fresh"


def check_claims_are_numbered_and_all_kept(world: World) -> None:
    bound(world)
    lock = world.locks.take_run(12)
    first, second, third = (made_claim(12, number) for number in (1, 2, 3))
    world.namespaces.open_claim(lock, first)
    noted = world.namespaces.note_worker(lock, first, made_worker())
    assert noted == structs.replace(first, worker=made_worker())
    second = structs.replace(second, supersedes=first.ref)
    world.namespaces.open_claim(lock, second, first)
    closing = made_closed("abandoned")
    closed = world.namespaces.close_claim(lock, second, closing)
    assert closed == structs.replace(second, closed=closing)
    world.namespaces.open_claim(lock, third)
    lock.close()
    claims = read(world).claims
    assert claims[1:] == (closed, third)
    ended = claims[0].closed
    assert ended is not None
    assert (ended.classification, ended.settlement) == ("superseded", None)
    assert claims[0] == structs.replace(noted, closed=ended)


def check_a_claim_that_does_not_follow_is_refused(world: World) -> None:
    lock = world.locks.take_run(12)
    first = made_claim(12)
    with refused():  # nothing says whose it is
        world.namespaces.open_claim(lock, first)
    bound(world)
    state = saved(world, made_state(12))
    with refused():  # it starts, although there is a state
        world.namespaces.open_claim(lock, first)
    here = world.namespaces.look(12).state_ref
    first = made_claim(12, state_ref=here)
    for wrong in (
        made_claim(12, 2, state_ref=here),
        made_claim(12, epic=OTHER_EPIC, state_ref=here),
        made_claim(12, repository_id=102, state_ref=here),
        made_claim(12, state_ref=here, supersedes=made_claim(12, 2).ref),
        made_claim(12, state_ref=here, closed=made_closed()),
        structs.replace(first, worker=made_worker()),
        structs.replace(first, issue_id=1),
        structs.replace(first, state_ref=structs.replace(here, digest=None)),
    ):
        with refused():
            world.namespaces.open_claim(lock, wrong)
    world.namespaces.open_claim(lock, first)
    saved(world, structs.replace(state, phase="review"))
    later = world.namespaces.look(12).state_ref
    second = made_claim(12, 2, state_ref=later, supersedes=first.ref)
    before = world.files()
    for wrong, over in (
        (structs.replace(second, supersedes=None), None),
        (second, None),
        (structs.replace(second, supersedes=None), first),
        (structs.replace(second, claim_id=first.claim_id), first),
        (structs.replace(second, generation=1), first),
        (structs.replace(second, generation=3), first),
        (structs.replace(second, state_ref=here), first),
    ):
        with refused():
            world.namespaces.open_claim(lock, wrong, over)
    assert world.files() == before
    world.namespaces.open_claim(lock, second, first)
    world.namespaces.close_claim(lock, second, made_closed())
    before = world.files()
    third = made_claim(12, 3, state_ref=later, supersedes=second.ref)
    with refused():  # there is nothing to take over from
        world.namespaces.open_claim(lock, third, second)
    assert world.files() == before
    lock.close()


def check_a_claim_is_closed_once(world: World) -> None:
    bound(world)
    lock = world.locks.take_run(12)
    earlier = claimed(world, made_claim(12, closed=made_closed()))
    claim = made_claim(12, 2)
    world.namespaces.open_claim(lock, claim)
    before = world.files()
    for other in (
        made_claim(12, 2, claim_id="c-another0"),
        made_claim(12, 3),
        earlier,
        made_claim(12, claim_id=claim.claim_id),
    ):
        with refused():
            world.namespaces.close_claim(lock, other, made_closed())
    for closing in (
        made_closed("superseded"),
        made_closed("settled"),
        made_closed("abandoned", "done"),
    ):
        with refused():
            world.namespaces.close_claim(lock, claim, closing)
    assert world.files() == before
    long = structs.replace(made_closed(), detail=f"ghp_{'a' * 36} \n\udc80{'é' * 9999}")
    closed = world.namespaces.close_claim(lock, claim, long)
    assert closed.closed is not None
    assert closed.closed.detail.startswith("[redacted] ?é")
    assert len(closed.closed.detail) == 500
    before = world.files()
    for again in (claim, closed):
        with refused():
            world.namespaces.close_claim(lock, again, made_closed())
        with refused():
            world.namespaces.note_worker(lock, again, made_worker())
    assert world.files() == before
    lock.close()
    assert read(world).claims == (earlier, closed)


def check_whoever_writes_has_the_lock(world: World) -> None:
    bound(world)
    gone = world.locks.take_run(12)
    gone.close()
    other = world.locks.take_run(13)
    other.hand_off()
    namespaces, claim = world.namespaces, made_claim(12)
    before = world.files()
    for lock in (gone, other):
        for write in (
            lambda lock=lock: namespaces.read(lock, 12),
            lambda lock=lock: namespaces.bind(lock, made_binding(12)),
            lambda lock=lock: namespaces.assign(lock, made_assignment(12)),
            lambda lock=lock: namespaces.open_claim(lock, claim),
            lambda lock=lock: namespaces.close_claim(lock, claim, made_closed()),
            lambda lock=lock: namespaces.note_worker(lock, claim, made_worker()),
        ):
            try:
                write()
            except RuntimeError:
                continue
            raise AssertionError("it was written to without a lock")
    assert world.files() == before
    namespaces.bind(other, made_binding(13))
    other.close()


def check_a_failed_write_leaves_nothing_uncertain(world: World) -> None:
    """Whichever write fails, the next run knows where it is."""
    lock = world.locks.take_run(12)
    open_now: list[int | None] = []
    with refused_at(world, 1):
        world.namespaces.bind(lock, made_binding(12))
    open_now.append(_open(world))
    world.namespaces.bind(lock, made_binding(12))
    open_now.append(_open(world))
    first, second = made_claim(12), made_claim(12, 2, supersedes=made_claim(12).ref)
    with refused_at(world, 1):
        world.namespaces.open_claim(lock, first)
    open_now.append(_open(world))
    world.namespaces.open_claim(lock, first)
    with refused_at(world, 1):
        world.namespaces.note_worker(lock, first, made_worker())
    open_now.append(_open(world))
    with refused_at(world, 1):
        world.namespaces.open_claim(lock, second, first)
    open_now.append(_open(world))
    with refused_at(world, 2):
        world.namespaces.open_claim(lock, second, first)
    open_now.append(_open(world))
    with refused_at(world, 1):
        world.namespaces.close_claim(lock, second, made_closed())
    open_now.append(_open(world))
    assert open_now == [None, None, None, 1, 1, 2, 2]
    third = made_claim(12, 3, supersedes=second.ref)
    world.namespaces.open_claim(lock, third, second)
    lock.close()
    ends = [each.closed and each.closed.classification for each in read(world).claims]
    assert ends == ["superseded", "superseded", None]


def _open(world: World) -> int | None:
    """The generation of the claim that counts; the issue can be begun."""
    now = classify(world.namespaces.look(12), EXPECTED)
    assert now.kind in ("absent", "fresh"), now
    return None if now.open_claim is None else now.open_claim.generation


@contextmanager
def refused_at(world: World, write: int) -> Iterator[None]:
    world.faults.fail_at(write)
    with refused():
        yield


def check_closing_by_state(world: World) -> None:
    """A worker's claim ends by what it left, and by nothing else."""
    bound(world)
    ends: list[tuple[str, str | None] | None] = []
    for number, phase in enumerate((None, "implement", "blocked", "done"), start=1):
        if phase is not None:
            state = made_state(12, phase, second=number)  # type: ignore[arg-type]
            saved(world, state)
        closing = by_state(found(world), exit_status=-9, told="", now=moment(number))
        ends.append(
            closing and (closing.classification, closing.settlement)  # type: ignore[arg-type]
        )
    world.put(places.state(12), b"{}")
    assert by_state(found(world), exit_status=0, told="", now=moment(9)) is None
    assert ends == [
        ("abandoned", None),
        ("resumable", None),
        ("settled", "blocked"),
        ("settled", "done"),
    ]


def check_what_is_told_of_a_run(world: World) -> None:
    namespaces, told = world.namespaces, made_scheduler()
    namespaces.write_scheduler(told)
    assert namespaces.read_scheduler(7) == told
    later = structs.replace(told, updated_at=moment(9))
    namespaces.write_scheduler(later)
    assert namespaces.read_scheduler(7) == later
    place = places.scheduler(EPIC.number)
    for number, junk in enumerate((b"", b"\xff", b"[]", b'{"schema":2}'), start=1):
        world.put(place, junk)
        with refused():
            namespaces.read_scheduler(7)
        name = namespaces.move_scheduler_aside(7, moment(5))
        last = "" if number == 1 else f"-{number}"
        assert name == f"scheduler.json.2026-11-30T00-00-05Z{last}"
        assert world.files()[*place[:-1], name] == junk
        assert namespaces.read_scheduler(7) is None
    for second, what in enumerate(ODD, start=10):
        world.plant(place, what)
        with refused():
            namespaces.read_scheduler(7)
        with refused():
            namespaces.write_scheduler(told)
        assert namespaces.move_scheduler_aside(7, moment(second)) is not None
    namespaces.write_scheduler(told)
    assert namespaces.read_scheduler(7) == told


def check_stop_requests(world: World) -> None:
    namespaces, place = world.namespaces, places.stop(7)
    for request in (StopRequest(mode="drain"), StopRequest(mode="now")):
        namespaces.write_stop(7, request)
        assert namespaces.read_stop(7).request == request
        assert namespaces.read_stop(7).kind == "request"
        assert namespaces.read_stop(8).kind == "none"
    asked = checked(StopRequest(mode="now", invocation_id="i-00000001"))
    world.put(place, asked)
    assert namespaces.read_stop(7).kind == "request"
    for junk in (b"", b"now", b"\xff\xfe", asked.replace(b"now", b"soon"), b"{}"):
        world.put(place, junk)
        assert namespaces.read_stop(7).kind == "unparsable"
        assert namespaces.read_stop(7).detail
    world.put(place, b" " * (1 << 20))
    assert namespaces.read_stop(7).kind == "unreadable"
    assert namespaces.remove_stop(7)
    assert namespaces.read_stop(7).kind == "none"
    for what in ODD:
        world.plant(place, what)
        assert namespaces.read_stop(7).kind == "unreadable"
        if what == "a folder":
            with refused():
                namespaces.remove_stop(7)
            break
        assert namespaces.remove_stop(7)
        assert not namespaces.remove_stop(7)


def check_a_run_of_a_single_issue(world: World) -> None:
    state = made_state(12)
    world.put(places.STANDALONE, checked(state))
    assert world.namespaces.standalone() == state
    world.put(places.STANDALONE, b"{")
    with refused():
        world.namespaces.standalone()


CHECKS: tuple[Callable[[World], None], ...] = (
    check_nothing_is_kept_at_first,
    check_a_namespace_is_bound_once,
    check_a_worker_is_told_its_work_anew_each_time,
    check_claims_are_numbered_and_all_kept,
    check_a_claim_that_does_not_follow_is_refused,
    check_a_claim_is_closed_once,
    check_whoever_writes_has_the_lock,
    check_a_failed_write_leaves_nothing_uncertain,
    check_closing_by_state,
    check_what_is_told_of_a_run,
    check_stop_requests,
    check_a_run_of_a_single_issue,
)
