"""Changes of the runs of EPICs by a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from forge_actors.domain.events import Event


class EpicSaved(Struct, frozen=True):
    """All that is known of a run now; the first one adds it."""

    epic: str
    #: It has not ended.
    active: bool
    body: bytes
    #: The request that began it: a second one begins nothing.
    request: str | None
    #: What is worked through, and where: of several runs the last one counts.
    target: str
    #: Somebody has to look at it.
    needs: bool
    event: Event | None = None


class EpicsForgotten(Struct, frozen=True):
    """Runs that have ended go, but for the newest ones."""

    kept: int
    event: None = None


EpicChange = EpicSaved | EpicsForgotten
