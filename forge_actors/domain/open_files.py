"""Open files: the system lets a process have so many, and what that allows.

A start or a client that finds no descriptor left would fail in the middle. So both are
counted before: there are as many workers, and as many clients, as surely fit.
"""

from __future__ import annotations

from typing import NamedTuple

#: What the node agent needs besides its jobs: its own files, and what a start opens.
AGENT_RESERVE = 32
#: Most that one job takes there: for each stream its pipe, its log, its times.
FILES_PER_JOB = 6
#: What the service needs besides its clients: its own files, and logs it reads.
SERVICE_RESERVE = 48
#: Less than this is too little to serve anybody.
LEAST = 64


class OpenFiles(NamedTuple):
    """The limit of a process (`ulimit -n`), or None where there is none."""

    limit: int | None
    #: That of the node agent, which it has from this process.
    of_agent: int | None = None

    @property
    def workers(self) -> int | None:
        """How many jobs the node agent can run at once; at least one is tried."""
        limit = self.of_agent or self.limit
        return (
            None if limit is None else max(1, (limit - AGENT_RESERVE) // FILES_PER_JOB)
        )

    @property
    def connections(self) -> int | None:
        """How many connections the service can have at once."""
        return None if self.limit is None else max(2, self.limit - SERVICE_RESERVE)

    def streams(self, connections: int, wanted: int) -> int:
        """How many of the wanted streams it can have beside its connections."""
        if self.limit is None:
            return wanted
        return max(0, min(wanted, self.limit - SERVICE_RESERVE - connections))

    def short_of(
        self, *, workers: int, connections: int, streams: int = 0
    ) -> list[str]:
        """Which of these were set to more than fits."""
        pairs = (
            ("workers", workers, self.workers),
            ("connections", connections, self.connections),
            ("streams", streams, self.streams(connections, streams)),
        )
        return [name for name, wanted, fit in pairs if fit is not None and wanted > fit]

    def __str__(self) -> str:
        limit = self.of_agent or self.limit
        return f"the limit of open files (ulimit -n) is {limit or 'unlimited'}"
