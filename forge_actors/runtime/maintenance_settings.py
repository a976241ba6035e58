"""The section `[maintenance]`: when the clean-up runs, and how much it may do."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class MaintenanceSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """When the clean-up runs, and how much it may do in one run."""

    enabled: bool = True
    #: From the begin of one run to that of the next, at least 30 s. Nothing runs while
    #: nothing can be due.
    period: str | float = "60s"
    #: After so long a run begins nothing more.
    time_limit: str | float = "40s"
    memory_mb: Annotated[int, Meta(ge=128, le=1 << 20)] = 512
    #: What each class may look at, and remove, in one visit.
    scans: Annotated[int, Meta(ge=1, le=100_000_000)] = 200_000
    removals: Annotated[int, Meta(ge=1, le=100_000_000)] = 10_000
