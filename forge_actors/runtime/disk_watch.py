"""The room on the disk of a home, looked at when somebody needs to know, and told."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.changes import Noted
from forge_actors.domain.disk import DiskLow, Thresholds, problem, state_of
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.events import Event
from forge_actors.edges.disk import room_of
from forge_actors.runtime.sources import SETTINGS_FILE, load

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.disk import Room, RoomState
    from forge_actors.domain.ports import Clock, Store
    from forge_actors.runtime.settings import Settings

#: Seconds for which a look holds: callers that come faster pay nothing for it.
LOOK_SECONDS = 1.0


def room_view(home: str, folder: str) -> dict[str, object]:
    """The room of a home that nothing serves, and that may not be there: `folder` is on
    its disk. Settings that cannot be read do not count."""
    thresholds = Thresholds()
    with suppress(InvalidInput):
        thresholds = load(Path(home) / SETTINGS_FILE).settings.disk.thresholds()
    return _view(home, room_of(folder), thresholds)


def _view(home: str, room: Room | None, thresholds: Thresholds) -> dict[str, object]:
    if room is None:
        return {"state": "unknown", "problem": None}
    warn, refuse = thresholds.of(room)
    return {
        "state": state_of(room, thresholds),
        "free": room.free,
        "total": room.total,
        "warn_free": warn,
        "refuse_free": refuse,
        "problem": problem(home, room, thresholds),
    }


class DiskWatch:
    """One for each runtime. Nothing here looks by itself."""

    def __init__(
        self,
        home: Path,
        settings: Callable[[], Settings],
        store: Store,
        clock: Clock,
        look: Callable[[str | Path], Room | None] = room_of,
    ) -> None:
        self._home = home
        self._settings = settings
        self._store = store
        self._clock = clock
        self._look = look
        self._looked_at = -LOOK_SECONDS
        self._room: Room | None = None
        self._state: RoomState = "ok"
        #: The settings that the state follows from.
        self._by: Settings | None = None

    def check(self) -> None:
        """Go on if a new job may be taken.

        Raises:
            DiskLow: there is too little room, and what to do about that.
        """
        late = trio.current_time() - self._looked_at >= LOOK_SECONDS
        if late or self._settings() is not self._by:
            self._look_again()
        if self._state == "full":
            raise DiskLow(self.problem)

    @property
    def problem(self) -> str | None:
        """What is wrong with the room there was at the last look."""
        if self._room is None:
            return None
        thresholds = self._settings().disk.thresholds()
        return problem(str(self._home), self._room, thresholds)

    def view(self) -> dict[str, object]:
        """The room there is now, as `status` shows it."""
        self._look_again()
        thresholds = self._settings().disk.thresholds()
        return _view(str(self._home), self._room, thresholds)

    def _look_again(self) -> None:
        self._looked_at = trio.current_time()
        self._by = self._settings()
        self._room = self._look(self._home)
        if self._room is None:
            return
        thresholds = self._by.disk.thresholds()
        state = state_of(self._room, thresholds)
        if state != self._state:
            self._state = state
            data: dict[str, object] = {
                "state": state,
                "free": self._room.free,
                "total": self._room.total,
            }
            event = Event("disk_room", self._clock.now(), data=data)
            # It is worth no commit of its own, and may find no room for one.
            self._store.save([Noted(event)], lazy=True)
