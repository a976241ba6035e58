"""What every store keeps of controllers, as checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from forge_actors.domain.controller_changes import (
    ControllerRemoved,
    ControllerSaved,
    WakeSaved,
)
from forge_actors.domain.controllers import MAX_WAKES
from forge_actors.domain.events import Event

if TYPE_CHECKING:
    from forge_actors.actors.controllers_messages import ControllerStore
    from forge_actors.domain.changes import Change
    from forge_actors.testing.store_contract import Open


async def check_controllers_are_kept_with_their_wakes(open_: Open) -> None:
    async with open_() as store:
        added = Event("controller_added", 1.0)
        changes: list[Change] = [
            ControllerSaved("c2", "b", "active", b"1", added),
            ControllerSaved("c1", "a", "active", b"2", added),
            ControllerSaved("c2", "b", "paused", b"3"),
            WakeSaved("w2", "c1", 2, "dispatching", b"two"),
            WakeSaved("w1", "c1", 1, "prepared", b"one"),
            WakeSaved("w3", "c1", 3, "prepared", b"three"),
            WakeSaved("w3", "c1", 3, "dispatched", b"done"),
        ]
        await store.save(changes).wait()
    async with open_() as store:
        kept = cast("ControllerStore", store)
        assert kept.controllers() == [("c1", "a", b"2"), ("c2", "b", b"3")]
        assert kept.open_wakes("c1") == [b"one", b"two"]
        assert (kept.wake("w3"), kept.wake("w4")) == (b"done", None)
        gone = ControllerRemoved("c1", Event("controller_removed", 2.0))
        await store.save([gone]).wait()
        assert kept.controllers() == [("c2", "b", b"3")]
        assert (kept.open_wakes("c1"), kept.wake("w3")) == ([], None)


async def check_the_oldest_wakes_are_forgotten(open_: Open) -> None:
    async with open_() as store:
        kept = cast("ControllerStore", store)
        wakes: list[Change] = [
            WakeSaved(f"w{n}", "c", n, "dispatched", b"x") for n in range(MAX_WAKES + 2)
        ]
        await store.save([*wakes, WakeSaved("other", "d", 0, "rejected", b"y")]).wait()
        found = [n for n in range(MAX_WAKES + 2) if kept.wake(f"w{n}") is not None]
        assert found == list(range(2, MAX_WAKES + 2))
        assert kept.wake("other") == b"y"


CHECKS = (
    check_controllers_are_kept_with_their_wakes,
    check_the_oldest_wakes_are_forgotten,
)
