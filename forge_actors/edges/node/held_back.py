"""Starts that the agent holds back: the system has no room for them now."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.edges.node import wire
    from forge_actors.edges.node.attempt import Attempt, Key

_log = logging.getLogger("forge_actors.edges.node.launcher")

#: Jobs whose problem is remembered; more of them have the same one.
MAX_PROBLEMS = 64


class HeldBack:
    """What the agent said of jobs, as long as these have neither begun nor ended."""

    _attempts: dict[Key, Attempt]

    def __init__(self) -> None:
        self._problems: dict[str, str] = {}

    @property
    def held_back(self) -> list[str]:
        """Why starts wait, one sentence a job."""
        waiting = {
            attempt.key[0]
            for attempt in self._attempts.values()
            if attempt.identity is None and attempt.receipt is None
        }
        known = self._problems
        self._problems = {job: known[job] for job in known if job in waiting}
        return list(self._problems.values())

    def _hear_problem(self, event: wire.Error) -> None:
        _log.warning("node agent, job %s: %s", event.job, event.problem)
        if event.job is None:
            return
        # Looking forgets those that are over.
        if len(self._problems) < MAX_PROBLEMS or len(self.held_back) < MAX_PROBLEMS:
            self._problems[event.job] = event.problem
