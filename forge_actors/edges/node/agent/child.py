"""What starting a job comes to: a child, or a reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.terminal import Terminal

#: A pid, and where its stdout and its stderr come from. With a terminal that is the
#: former, and the latter is -1.
Child = tuple[int, int, int, "Terminal | None"]


class SpawnFailed(Exception):
    """The job could not be started; the message is one sentence for the user."""


class NoRoom(SpawnFailed):
    """The system had too little left of what a start needs; the job is not to blame."""
