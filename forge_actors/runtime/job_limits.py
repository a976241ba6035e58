"""What keeps a job to its limits on this machine."""

from __future__ import annotations

import os
from typing import NamedTuple

from forge_actors.edges.node.agent.cgroup import find_place


class LimitsHere(NamedTuple):
    """For a service that is started from here."""

    #: Where cgroups of jobs are made; None if they cannot be.
    cgroups: str | None
    #: Whether the limits of these can be set, for the job as a whole.
    memory_of_job: bool
    pids_of_job: bool
    #: Whether the number of processes can be limited at all.
    pids: bool
    #: Why not all of this is so.
    reason: str


def limits_here() -> LimitsHere:
    """Look at this machine and this process."""
    place = find_place()
    pids_of_job = "pids" in place.controllers
    return LimitsHere(
        place.folder,
        "memory" in place.controllers,
        pids_of_job,
        # Without a cgroup the system counts the processes of a user, and none of root.
        pids_of_job or os.geteuid() != 0,
        place.reason,
    )
