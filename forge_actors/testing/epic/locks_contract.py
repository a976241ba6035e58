"""What every implementation of the port `Locks` must keep to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from forge_actors.domain.epic.errors import Busy, LockHeld, StateError
from forge_actors.domain.epic.ports import Holder

if TYPE_CHECKING:
    from forge_actors.domain.epic.ports import Locks


class Worker(Protocol):
    """A process that inherited a descriptor."""

    def end(self) -> None: ...


class World(Protocol):
    """One repository, and the processes that work in it."""

    @property
    def locks(self) -> Locks: ...

    @property
    def others(self) -> Locks:
        """Those of another process."""

    def inherit(self, descriptor: int) -> Worker:
        """Start a process that inherits this."""

    def has_folder(self, issue: int) -> bool:
        """Whether an issue has a folder."""

    def use_folder(self, issue: int) -> None:
        """Have something kept in the folder of an issue, whose lock is held."""


def _held(locks: Locks) -> bool:
    """Whether somebody is the controller: one that nobody has is not kept."""
    try:
        locks.take_controller().close()
    except LockHeld:
        return True
    return False


def _busy(locks: Locks, issue: int = 12) -> bool:
    try:
        locks.take_run(issue).close()
    except Busy:
        assert locks.is_busy(issue)
        return True
    assert not locks.is_busy(issue)
    return False


def check_a_repository_has_one_controller(world: World) -> None:
    taken = world.locks.take_controller()
    assert _held(world.others)
    assert _held(world.locks)  # in the same process too
    taken.close()
    assert not _held(world.others)


def check_workers_keep_the_controllers_lock(world: World) -> None:
    taken = world.locks.take_controller()
    first, second = (world.inherit(taken.share()) for _ in range(2))
    taken.close()
    assert _held(world.others)
    first.end()
    assert _held(world.others)
    second.end()
    assert not _held(world.others)


def check_an_issue_is_held_once(world: World) -> None:
    taken = world.locks.take_run(12)
    assert taken.issue == 12
    assert taken.held
    assert _busy(world.others)
    assert _busy(world.locks)
    assert not _busy(world.others, 13)
    taken.close()
    assert not taken.held
    assert not _busy(world.others)


def check_what_is_not_handed_off_is_free_at_once(world: World) -> None:
    taken = world.locks.take_run(12)
    taken.close()
    assert not _busy(world.others)


def check_what_was_handed_off_is_as_long_held_as_the_worker_lives(
    world: World,
) -> None:
    taken = world.locks.take_run(12)
    worker = world.inherit(taken.hand_off())
    assert taken.held
    taken.close()
    assert not taken.held
    assert _busy(world.others)
    assert _busy(world.locks)
    worker.end()
    assert not _busy(world.others)


def check_a_second_close_closes_nothing(world: World) -> None:
    controller = world.locks.take_controller()
    controller.close()
    later = world.locks.take_controller()
    controller.close()
    assert _held(world.others)
    later.close()
    run = world.locks.take_run(12)
    run.close()
    again = world.locks.take_run(12)
    run.close()
    assert _busy(world.others)
    again.close()


def check_what_was_let_go_of_is_not_shared(world: World) -> None:
    controller, run = world.locks.take_controller(), world.locks.take_run(12)
    controller.close()
    run.close()
    for share in (controller.share, run.hand_off):
        try:
            share()
        except StateError:
            continue
        raise AssertionError("a descriptor that is closed was given away")


def check_what_is_no_issue_has_no_lock(world: World) -> None:
    for number in (0, -1, 2**31):
        for ask in (world.locks.take_run, world.locks.is_busy):
            try:
                ask(number)
            except StateError:
                continue
            raise AssertionError(f"{number} is no number of an issue")


def check_a_folder_that_only_the_lock_needed_goes_with_it(world: World) -> None:
    assert not world.locks.is_busy(12)
    assert not world.has_folder(12)
    taken = world.locks.take_run(12)
    assert world.has_folder(12)
    taken.close()
    assert not world.has_folder(12)
    taken = world.locks.take_run(12)
    world.use_folder(12)
    taken.close()
    assert world.has_folder(12)


def check_a_folder_stays_with_the_worker(world: World) -> None:
    taken = world.locks.take_run(12)
    worker = world.inherit(taken.hand_off())
    taken.close()
    assert world.has_folder(12)
    worker.end()


def check_the_controller_can_be_seen(world: World) -> None:
    assert world.others.controller() is None
    taken = world.locks.take_controller()
    seen = world.others.controller()
    assert seen is not None
    assert not seen.ended
    assert seen.pid is not None
    taken.close()
    assert world.others.controller() is None
    taken = world.locks.take_controller()
    worker = world.inherit(taken.share())
    taken.close()
    assert world.others.controller() == Holder(None, ended=True)
    worker.end()
    assert world.others.controller() is None


CHECKS = (
    check_a_repository_has_one_controller,
    check_workers_keep_the_controllers_lock,
    check_an_issue_is_held_once,
    check_what_is_not_handed_off_is_free_at_once,
    check_what_was_handed_off_is_as_long_held_as_the_worker_lives,
    check_a_second_close_closes_nothing,
    check_what_was_let_go_of_is_not_shared,
    check_what_is_no_issue_has_no_lock,
    check_a_folder_that_only_the_lock_needed_goes_with_it,
    check_a_folder_stays_with_the_worker,
    check_the_controller_can_be_seen,
)
