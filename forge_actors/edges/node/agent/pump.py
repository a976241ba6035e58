"""What the loop calls when a stream of a job has something, or has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.node.agent.loop import READ

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.jobs import Job
    from forge_actors.edges.node.agent.loop import Loop
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


def can_wait(job: Job) -> bool:
    """Whether nobody misses it if its streams are not read for a moment.

    A short job that prints little is over by then, and all of it is read at its end:
    the loop need not know of its pipes at all. One whose silence counts is read at
    once, and so is a terminal, which forgets what nobody reads, and what follows a job.
    """
    order = job.order
    return order.idle is None and not order.pty and job.previous is None


def attend(node: Node, loop: Loop, job: Job) -> None:
    """Read its streams from now on, whenever there is something."""
    for stream in job.streams:
        if stream.fd >= 0 and not loop.knows(stream.fd):
            loop.register(stream.fd, READ, Pump(node, job, stream))
