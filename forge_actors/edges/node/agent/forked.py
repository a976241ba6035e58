"""Starting jobs that change something in the child before their program runs.

The fork copies the page tables of the agent, and Python runs in the child: slower than
`spawn`, and needed only for a terminal and for limits, or where the system has no
posix_spawn that can begin a session.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

from forge_actors.edges.node.agent.child import SpawnFailed
from forge_actors.edges.node.agent.handed import FIRST, reserved
from forge_actors.edges.node.agent.limits import Preparation, decode
from forge_actors.edges.node.agent.terminal import TERM, Terminal, take_control

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.edges.node.agent.cgroup import Cgroups
    from forge_actors.edges.node.agent.child import Child
    from forge_actors.edges.node.agent.order import Order

    #: What are stdin, stdout and stderr of the job.
    Streams = tuple[int, int, int]


def with_terminal(order: Order, cgroups: Cgroups) -> Child:
    """Start a job on a terminal of its own.

    Raises:
        SpawnFailed, OSError, ValueError: it does not run.
    """
    order.env.setdefault(b"TERM", TERM)
    try:
        terminal = Terminal()
    except OSError as error:
        raise SpawnFailed(f"there is no terminal: {error.strerror}") from None
    end = terminal.job_side
    try:
        pid = _start(order, cgroups, (end, end, end), take_control)
    except BaseException:
        terminal.close()
        raise
    return pid, terminal.fd, -1, terminal


def start(order: Order, cgroups: Cgroups, streams: Streams) -> int:
    """Start a job with these streams and its limits; its pid.

    Raises:
        SpawnFailed, OSError, ValueError: it does not run.
    """
    return _start(order, cgroups, streams, None)


def _start(
    order: Order, cgroups: Cgroups, streams: Streams, first: Callable[[], None] | None
) -> int:
    """Start it; the child does `first`, then what its limits need."""
    if order.limits is None:
        return _popen(order, streams, first)
    limits = decode(order.limits)
    if limits.memory is not None or limits.pids is not None:
        order.cgroup = cgroups.make(order.key)
    try:
        with closing(Preparation(limits, order.cgroup)) as limit:

            def prepare() -> None:
                if first is not None:
                    first()
                limit()

            return _popen(order, streams, prepare)
    except BaseException:
        if order.cgroup is not None:
            order.cgroup.remove()
        raise


def _popen(order: Order, streams: Streams, prepare: Callable[[], None] | None) -> int:
    descriptors = order.descriptors
    if not descriptors:
        return _begin(order, streams, prepare)

    def hand_over() -> None:
        if prepare is not None:
            prepare()
        # Last: what is in these places until now may be needed before.
        for number, fd in enumerate(descriptors, FIRST):
            os.dup2(fd, number)

    with reserved(len(descriptors)):
        return _begin(order, streams, hand_over)


def _begin(order: Order, streams: Streams, prepare: Callable[[], None] | None) -> int:
    stdin, stdout, stderr = streams
    last = FIRST + len(order.descriptors)
    try:
        if order.worktree is not None:
            # What it begins in is what was looked at.
            os.chdir(order.cwd)
            order.worktree.check()
        child = subprocess.Popen(
            order.argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=order.cwd if order.worktree is None else None,
            env=order.env,
            start_new_session=True,
            pass_fds=range(FIRST, last),
            preexec_fn=prepare,  # noqa: PLW1509 - the agent has one thread
        )
    except subprocess.SubprocessError:
        raise SpawnFailed("its terminal or its limits could not be set up") from None
    finally:
        if order.worktree is not None:
            os.chdir("/")
    # It is the agent who waits for it, so Popen must not try.
    child.returncode = 0
    return child.pid
