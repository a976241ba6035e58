"""The submissions of schedules: so many at once, the others wait for their turn."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.actors.schedules_messages import Submitted
from forge_actors.domain.errors import MailboxClosed
from forge_actors.domain.schedules import occurrence_id

if TYPE_CHECKING:
    from collections.abc import Callable

    import trio

    from forge_actors.actors.agenda import Agenda
    from forge_actors.actors.schedules_messages import Context, Message
    from forge_actors.domain.schedules import Pending, Schedule

#: Those that are under way at once.
PARALLEL = 64


class Submissions:
    """Those of one schedules actor, which is told the outcome of each."""

    def __init__(
        self,
        context: Context,
        agenda: Agenda,
        tell: Callable[[Message], None],
        nursery: trio.Nursery,
    ) -> None:
        self._context = context
        self._agenda = agenda
        self._tell = tell
        self._nursery = nursery
        #: The schedules of all that wait or are under way are busy.
        self._waiting: list[tuple[str, Pending, str]] = []

    def add(self, schedule: str, entry: Pending, reason: str) -> None:
        """Submit the job of a window in its turn."""
        self._agenda.busy.add(schedule)
        self._waiting.append((schedule, entry, reason))

    def start(self) -> None:
        """Begin those whose turn it is."""
        busy = self._agenda.busy
        while self._waiting and len(busy) - len(self._waiting) < PARALLEL:
            key, entry, reason = self._waiting.pop(0)
            schedule = self._agenda.get(key)
            if schedule is None:
                busy.discard(key)
                continue
            stopped = schedule.state != "active" and not entry.asked
            if stopped or entry not in schedule.progress.pending:
                # It was paused or changed while it waited for its turn.
                busy.discard(key)
                self._agenda.keep(schedule)
                continue
            self._nursery.start_soon(self._submit, schedule, entry, reason)

    async def _submit(self, schedule: Schedule, entry: Pending, reason: str) -> None:
        request = structs.replace(
            schedule.definition.request,
            env={**schedule.definition.request.env, **entry.env},
            request_id=occurrence_id(schedule.id, entry.key),
            origin=f"schedule:{schedule.name}",
        )
        outcome: str | Exception | None
        try:
            if schedule.definition.wake is None:
                outcome = await self._context.submit(request)
            else:
                outcome = await self._context.wake(schedule, request)
        except Exception as error:  # noqa: BLE001 - the actor decides, for this one only
            outcome = error
        with suppress(MailboxClosed):  # whoever is started anew finds the job
            self._tell(Submitted(schedule.id, entry, reason, outcome))
