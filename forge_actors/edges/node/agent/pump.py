"""What the loop calls when a stream of a job has something, or has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.jobs import Job
    from forge_actors.edges.node.agent.node import Node
    from forge_actors.edges.node.agent.output import Stream


class Pump:
    """What the loop calls for one stream; lighter than a partial and its tuple."""

    __slots__ = ("_job", "_node", "_stream")

    def __init__(self, node: Node, job: Job, stream: Stream) -> None:
        self._node = node
        self._job = job
        self._stream = stream

    def __call__(self) -> None:
        self._node.pumped(self._job, self._stream)
