"""What every store keeps of its owner: two stores are open on one file at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import WriterFenced
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.testing.made_changes import (
    dispatched,
    ended,
    job,
    ran,
    repository,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.domain.ownership import Owner
    from forge_actors.domain.ports import Store
    from forge_actors.testing.store_contract import Check, Open

_PROCESS = ProcessIdentity("boot", 100, 7, 4026531836)


def take_over(store: Store, instance: str) -> Owner:
    return store.take_over(instance, _PROCESS, "0.1.0-abc", 5.0)


def _refusal(store: Store, *changes: Change, lazy: bool = False) -> str:
    """Why these changes are not saved."""
    try:
        store.save(changes, then=_never, lazy=lazy)
    except WriterFenced as error:
        return str(error)
    raise AssertionError("it is still allowed to write")


def _never() -> None:
    raise AssertionError("it was told that it was saved")


async def check_each_owner_has_a_larger_epoch(open_: Open) -> None:
    for number in range(1, 4):
        async with open_() as store:
            owner = take_over(store, f"runtime_{number}")
            assert owner.epoch == number
            assert (owner.instance, owner.process) == (f"runtime_{number}", _PROCESS)
            assert (owner.release, owner.acquired_at) == ("0.1.0-abc", 5.0)


async def check_an_older_owner_saves_nothing_any_more(open_: Open) -> None:
    async with open_() as older:
        take_over(older, "runtime_a")
        await older.save([repository(), job(), job("second")]).wait()
        async with open_() as younger:
            take_over(younger, "runtime_b")
            for lazy in (True, False):
                for change in (dispatched(), ran(), ended(), job("late")):
                    # The first thing it was refused stays the reason.
                    told = _refusal(older, change, lazy=lazy)
                    assert told == "WRITER_FENCED:consume_queue:runtime_instance_fenced"
            await younger.save([job("third")]).wait()
    async with open_() as store:
        take_over(store, "runtime_c")
        found = [(held.id, held.state) for held in store.load_jobs("repo")]
        assert found == [("job", "queued"), ("second", "queued"), ("third", "queued")]
        assert store.load("repo").fence == 0


async def check_what_is_refused_is_named(open_: Open) -> None:
    actions: Sequence[tuple[str, Change]] = (
        ("consume_queue", dispatched()),
        ("renew_lease", ran()),
        ("write_process_terminal", ended()),
        ("scheduler_write", job("late")),
    )
    for action, change in actions:
        async with open_() as older:
            take_over(older, "runtime_a")
            async with open_() as younger:
                take_over(younger, "runtime_b")
                expected = f"WRITER_FENCED:{action}:runtime_instance_fenced"
                assert _refusal(older, change, lazy=True) == expected


async def check_nothing_is_saved_without_a_claim_where_there_is_an_owner(
    open_: Open,
) -> None:
    async with open_() as nobody:
        await nobody.save([repository()]).wait()
        async with open_() as owner:
            take_over(owner, "runtime_a")
            expected = "runtime_write_claim_unbound_while_authority_present"
            assert _refusal(nobody, job()).endswith(f":scheduler_write:{expected}")
            assert owner.load_jobs("repo") == []


CHECKS: tuple[Check, ...] = (
    check_each_owner_has_a_larger_epoch,
    check_an_older_owner_saves_nothing_any_more,
    check_what_is_refused_is_named,
    check_nothing_is_saved_without_a_claim_where_there_is_an_owner,
)
