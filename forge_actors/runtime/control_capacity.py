"""What can be asked of a runtime about what may be in use at once, and what is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from msgspec import convert, to_builtins

from forge_actors.actors.supervisor_messages import Count, Survey
from forge_actors.domain.capacity_view import CapacityView
from forge_actors.domain.errors import Unavailable
from forge_actors.runtime.control_base import ControlBase
from forge_actors.runtime.views import account_view

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from forge_actors.domain.settings import SettingChange

#: Seconds that the supervisor has to say how it is.
SURVEY_SECONDS = 5.0
#: What is said of one that did not.
NO_SURVEY = Survey({}, 0, 0, None, draining=False, waiting=0)


class CapacityControl(ControlBase):
    """The part that is about tokens, and the settings that say how many there are."""

    async def capacity(self) -> CapacityView:
        """What may be in use at once and what is.

        Raises:
            Unavailable: the supervisor does not answer.
        """
        survey = await self._survey()
        if survey is None:
            raise Unavailable(f"the supervisor did not answer in {SURVEY_SECONDS:g} s")
        tokens, providers = self._in_use(survey)
        active = tokens.pop("active_repositories")
        table = {
            "tokens": tokens,
            "active_repositories": active,
            "providers": providers,
            "pressure": survey.pressure,
        }
        return convert(table, CapacityView)

    async def change_settings(
        self, changes: Mapping[str, Mapping[str, Any]]
    ) -> list[SettingChange]:
        """Exchange settings that a program gave; what changed.

        Raises:
            InvalidInput: naming the field. Refused: they are those of a file, or one
                cannot be exchanged while the runtime runs.
        """
        return await self._settings.change(changes)

    async def _survey(self) -> Survey | None:
        """What the supervisor has; None if it does not answer."""
        with trio.move_on_after(SURVEY_SECONDS):
            return await self._supervisor.ask(Count)
        return None

    def _in_use(self, survey: Survey) -> tuple[dict[str, object], dict[str, object]]:
        """The tokens by kind, with the active repositories, and by provider."""
        capacity: dict[str, object] = {}
        providers: dict[str, object] = {}
        paused = {pause.scope for pause in self._pause_views()}
        closed = {account.token: account for account in survey.closed}
        for kind, use in survey.tokens.items():
            entry: dict[str, object] = {
                "used": use.used,
                "limit": use.limit,
                "jobs": list(use.jobs),
            }
            if kind.startswith("provider:"):
                account = closed.get(kind)
                state = "open" if account is None else "closed"
                state = "paused" if kind in paused else state
                entry["state"] = state if use.known else "removed"
                if account is not None:
                    entry["closed"] = to_builtins(account_view(account, self._roots))
                providers[kind.partition(":")[2]] = entry
            else:
                capacity[kind] = entry
        capacity["active_repositories"] = {
            "used": survey.active_repositories,
            "limit": self._settings().limits.active_repositories,
        }
        return capacity, providers
