"""What the maintenance actor is told and asked."""

from __future__ import annotations

from msgspec import Struct

from forge_actors.actors.mailbox import Reply
from forge_actors.domain.cleaning import CleanRequest
from forge_actors.domain.maintenance import CleanResult


class Clean(Struct, frozen=True):
    """Run now, after the run that goes on; the answer is what it came to."""

    request: CleanRequest
    reply: Reply[CleanResult]


class RunDue(Struct, frozen=True):
    """The moment of the next run by itself has come."""


class JobEnded(Struct, frozen=True):
    """The first job has ended since the last run began."""


class Ran(Struct, frozen=True):
    """The run that went on has ended."""

    result: CleanResult


class Reconsider(Struct, frozen=True):
    """The settings are others."""


class Stop(Struct, frozen=True):
    """End the run that goes on, with its processes, and then yourself."""


Message = Clean | RunDue | JobEnded | Ran | Reconsider | Stop
