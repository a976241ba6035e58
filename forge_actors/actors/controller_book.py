"""The controllers that there are, each saved as it is put here.

They are the actor's own: nobody else changes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.controller_changes import ControllerRemoved
from forge_actors.domain.controller_records import controller_event, saved, wake_saved
from forge_actors.domain.errors import NotFound, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forge_actors.actors.controllers_messages import ControllerStore
    from forge_actors.domain.changes import Change
    from forge_actors.domain.controllers import Controller, Wake
    from forge_actors.domain.events import Event
    from forge_actors.domain.ports import Clock, Saved


class ControllerBook:
    """Controllers by id."""

    def __init__(self, store: ControllerStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._known: dict[str, Controller] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Controller]:
        return iter(tuple(self._known.values()))

    def get(self, key: str) -> Controller | None:
        return self._known.get(key)

    def take_up(self, controller: Controller) -> None:
        """One that is saved."""
        self._known[controller.id] = controller

    def named(self, name: str) -> Controller:
        """The controller with this name or id.

        Raises:
            NotFound: there is none.
        """
        for controller in self._known.values():
            if name in (controller.name, controller.id):
                return controller
        raise NotFound(f"there is no controller {name!r}")

    def usable(self, name: str) -> Controller:
        """The same, if it can be read.

        Raises:
            NotFound: there is none. Refused: it is set aside.
        """
        controller = self.named(name)
        if controller.state == "quarantined":
            raise Refused(f"controller {name!r} is set aside: {controller.why}")
        return controller

    def become(
        self,
        before: Controller,
        after: Controller,
        then: Callable[[], object] | None = None,
        wake: Wake | None = None,
    ) -> Saved:
        """Keep it as it is now, and tell if its state is another one."""
        event = None
        if before.state != after.state:
            event = self.event(f"controller_{after.state}", after, after.why)
        return self.save(after, event, wake, then=then)

    def save(
        self,
        controller: Controller,
        event: Event | None = None,
        wake: Wake | None = None,
        *,
        then: Callable[[], object] | None = None,
    ) -> Saved:
        """Keep it, and with it what became of a wake: both or nothing."""
        self._known[controller.id] = controller
        changes: list[Change] = [saved(controller, event)]
        if wake is not None:
            changes.append(wake_saved(controller, wake, self._clock.now()))
        return self._store.save(changes, then=then)

    def drop(
        self, controller: Controller, then: Callable[[], object] | None = None
    ) -> None:
        """Forget it; its jobs go on."""
        self._known.pop(controller.id, None)
        event = self.event("controller_removed", controller)
        self._store.save([ControllerRemoved(controller.id, event)], then=then)

    def event(
        self,
        kind: str,
        controller: Controller,
        reason: str | None = None,
        *,
        job: str | None = None,
        **data: object,
    ) -> Event:
        now = self._clock.now()
        return controller_event(kind, controller, now, reason, job=job, **data)
