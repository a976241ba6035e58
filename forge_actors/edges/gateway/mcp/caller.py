"""Who calls: where it was started, and the job that it is a part of."""

from __future__ import annotations

from contextvars import ContextVar

from msgspec import Struct

from forge_actors.domain.effects import OF_JOB
from forge_actors.domain.requests import Parent

#: Calls of one session that are in progress at once. A wait is one.
MAX_CALLS = 32


class Introduction(Struct, frozen=True, omit_defaults=True):
    """What the program that an agent starts says of it, before anything else."""

    #: The folder that it was started in.
    folder: str | None = None
    parent: Parent | None = None


class Caller:
    """One session, or one request that belongs to none."""

    def __init__(
        self, introduction: Introduction | None = None, *, job: str | None = None
    ) -> None:
        told = introduction or Introduction()
        self.folder = told.folder
        self.parent = told.parent
        #: The job that the agent is a part of.
        self.job = job if told.parent is None else told.parent.job
        self.calls = 0

    @property
    def origin(self) -> str:
        """What marks the jobs that it submits."""
        return "mcp" if self.job is None else f"{OF_JOB}{self.job}"

    def __str__(self) -> str:
        """It, and that it is no person."""
        return "an agent" if self.job is None else f"job {self.job}"


CALLER: ContextVar[Caller] = ContextVar("CALLER")
