"""The settings of artifacts: a table of `settings.toml`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from forge_actors.domain.deadlines import parse_budget


class ArtifactSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How much is collected of one attempt of a job."""

    files: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    bytes: Annotated[int, Meta(ge=1, le=1 << 40)] = 1 << 30
    #: How long that may take; its claims and tokens are held meanwhile.
    timeout: str | float = "2m"

    @property
    def seconds(self) -> float:
        return parse_budget(self.timeout, field="artifacts.timeout")
