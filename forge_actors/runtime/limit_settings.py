"""The sections `limits` and `pressure` of the settings: how much may run at once."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=1, le=10_000)]


class LimitSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How much may run at once."""

    #: Jobs of all kinds.
    workers: Count = 4
    #: Repositories in which jobs run.
    active_repositories: Count = 4
    #: Of the jobs those of the kinds `check` and `verify-edit`, and checks of agents.
    heavy_checks: Count = 2
    #: Of the jobs those with an agent token, whatever their provider.
    agents: Count = 4
    #: Workers of one repository; the global limit where it is not given.
    repository_workers: Count | None = None
    #: Jobs that the node agent may have to begin as soon as a short one ends; 0: none.
    ahead: Annotated[int, Meta(ge=0, le=1000)] = 16
    #: Jobs that may wait or run; further ones are refused.
    queued_jobs: Annotated[int, Meta(ge=1, le=10_000_000)] = 200_000


class PressureSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """When the machine counts as under pressure, and how many jobs may run then."""

    min_free_memory_mb: Annotated[int, Meta(ge=64, le=1 << 30)] = 512
    max_load_per_cpu: Annotated[float, Meta(ge=0.25, le=1e9)] = 1.5
    pressure_workers: Count = 1
