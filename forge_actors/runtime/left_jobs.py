"""Jobs that a service has left running, and that no other one has taken over yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.edges.node.finding import end_agent
from forge_actors.runtime.ownership import own_home

if TYPE_CHECKING:
    from pathlib import Path


def end_left_jobs(home: Path) -> int | None:
    """End them and their node agent; its pid, or None if there are none.

    What becomes of the jobs is decided by the next service.

    Raises:
        Refused: a service runs, which has taken them over.
        LauncherDown: not all of them could be ended.
    """
    with own_home(home):
        return trio.run(end_agent, home)
