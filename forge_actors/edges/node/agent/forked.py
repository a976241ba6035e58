"""Starting jobs that change something in the child before their program runs.

The fork copies the page tables of the agent, and Python runs in the child: slower than
`spawn`, and needed only for a terminal and for limits, or where the system has no
posix_spawn that can begin a session.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from forge_actors.edges.node.agent.child import SpawnFailed
from forge_actors.edges.node.agent.limits import Preparation, decode
from forge_actors.edges.node.agent.terminal import TERM, Terminal, take_control

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.edges.node.agent.child import Child
    from forge_actors.edges.node.agent.order import Order


def with_terminal(order: Order) -> Child:
    """Start a job on a terminal of its own.

    Raises:
        SpawnFailed, OSError, ValueError: it does not run.
    """
    limit = _limits(order)

    def prepare() -> None:
        take_control()
        if limit is not None:
            limit()

    order.env.setdefault(b"TERM", TERM)
    try:
        terminal = Terminal()
    except OSError as error:
        raise SpawnFailed(f"there is no terminal: {error.strerror}") from None
    end = terminal.job_side
    try:
        pid = _popen(order, end, end, end, prepare)
    except BaseException:
        terminal.close()
        raise
    return pid, terminal.fd, -1, terminal


def start(order: Order, stdin: int, stdout: int, stderr: int) -> int:
    """Start a job with these streams and its limits; its pid.

    Raises:
        SpawnFailed, OSError, ValueError: it does not run.
    """
    return _popen(order, stdin, stdout, stderr, _limits(order))


def _limits(order: Order) -> Callable[[], None] | None:
    return None if order.limits is None else Preparation(decode(order.limits))


def _popen(
    order: Order,
    stdin: int,
    stdout: int,
    stderr: int,
    prepare: Callable[[], None] | None,
) -> int:
    try:
        child = subprocess.Popen(
            order.argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=order.cwd,
            env=order.env,
            start_new_session=True,
            preexec_fn=prepare,  # noqa: PLW1509 - the agent has one thread
        )
    except subprocess.SubprocessError:
        raise SpawnFailed("its terminal or its limits could not be set up") from None
    # It is the agent who waits for it, so Popen must not try.
    child.returncode = 0
    return child.pid
