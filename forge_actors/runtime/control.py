"""Control: everything a caller can ask of a runtime, answered by actors and store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors import __version__
from forge_actors.actors import supervisor
from forge_actors.domain.jobs import STATES
from forge_actors.runtime.control_jobs import JobControl
from forge_actors.runtime.control_output import OutputControl
from forge_actors.runtime.control_repositories import RepositoryControl
from forge_actors.runtime.views import timestamp

if TYPE_CHECKING:
    from forge_actors.domain.settings import SettingChange, SettingView


class RuntimeControl(RepositoryControl, JobControl, OutputControl):
    """The port `Control` on one runtime: its nouns, and the runtime itself."""

    @property
    def agent_pid(self) -> int:
        """The process id of the node agent that runs now."""
        return self._launcher.agent_pid

    async def status(self) -> dict[str, object]:
        survey = await self._supervisor.ask(supervisor.Count)
        counts = self._store.counts()
        capacity: dict[str, object] = {}
        providers: dict[str, object] = {}
        for kind, use in survey.tokens.items():
            entry = {"used": use.used, "limit": use.limit, "jobs": list(use.jobs)}
            if kind.startswith("provider:"):
                state = "open" if use.known else "removed"
                providers[kind.partition(":")[2]] = {**entry, "state": state}
            else:
                capacity[kind] = entry
        capacity["active_repositories"] = {
            "used": survey.active_repositories,
            "limit": self._settings().limits.active_repositories,
        }
        trouble = self._store.trouble
        degraded = [f"the store saves nothing: {trouble}"] if trouble else []
        return {
            "service": {
                "pid": os.getpid(),
                "agent_pid": self.agent_pid,
                "version": __version__,
                "started_at": timestamp(self._started_at),
                "home": str(self._home),
            },
            "ready": not degraded,
            "readiness": {
                "database": "fail" if trouble else "pass",
                "scheduler": "pass",
                # Nothing of this release looks at these two.
                "releaseCoherence": "not_observed",
                "mcpEndToEnd": "not_observed",
            },
            "degraded": degraded,
            "capacity": capacity,
            "providers": providers,
            "counts": {state: counts[state] for state in STATES if counts.get(state)},
            "pressure": {
                "active": survey.pressure is not None,
                "reason": survey.pressure,
            },
            "repositories": {"known": len(self._registry.all()), "awake": survey.awake},
            "store": {"synchronous": "FULL", "last_event": self.last_event},
        }

    async def settings(self) -> list[SettingView]:
        return self._settings.loaded.views()

    async def reload_settings(self) -> list[SettingChange]:
        return await self._settings.reload()

    def close(self) -> None:
        """The runtime ends: whoever waits for what will not happen learns so."""
        self._closed.set()
        self._endings.close()

    def request_stop(self) -> None:
        self.stop_requested.set()
