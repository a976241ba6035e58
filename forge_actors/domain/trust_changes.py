"""Changes of what is trusted of repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from forge_actors.domain.events import Event


class TrustSaved(Struct, frozen=True):
    """What is trusted of a repository from now on, encoded: its times are those of the
    wall clock."""

    repo: str
    body: bytes
    event: Event | None = None


class TrustDiffers(Struct, frozen=True):
    """How what is in its checkout differs from that, encoded; None: it does not."""

    repo: str
    differs: bytes | None
    event: Event | None = None


class TrustRemoved(Struct, frozen=True):
    repo: str
    event: Event


TrustChange = TrustSaved | TrustDiffers | TrustRemoved
