"""Starting the processes of orders.

A start must be cheap: nothing of ours runs in the child, and this process, which may be
large, is not copied for it. That is what posix_spawn does. A terminal and limits can be
set up only in the child itself; for these few jobs there is `forked`.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
import sys
from typing import TYPE_CHECKING

from forge_actors.edges.node.agent import outputs
from forge_actors.edges.node.agent.cgroup import Cgroups
from forge_actors.edges.node.agent.child import Child, NoRoom, SpawnFailed
from forge_actors.edges.node.agent.handed import FIRST
from forge_actors.edges.node.agent.held_starts import NO_ROOM

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.order import Order

#: Where posix_spawn can begin a session and tells what went wrong in the child.
_CAN_SPAWN = sys.platform.startswith("linux")
#: Signals that Python ignores, and a child would ignore with it.
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
#: The descriptor of the folder that a step of a job is given.
FOLDER = 3


class Spawner:
    """Starts children, all of them in the cgroup it enters, where it can.

    Holds /dev/null open: nearly every job reads from it.
    """

    def __init__(self, instance: str) -> None:
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._cgroups = Cgroups(instance)
        self._cgroups.enter()

    def spawn(self, order: Order) -> Child:
        """Start the child.

        Raises:
            SpawnFailed: it does not run, and nothing of it is left.
            NoRoom: the same, and a later try may go well.
        """
        try:
            if order.outputs is not None and order.step is None:
                outputs.make(order.outputs)
            if order.step is None and order.artifacts is not None and _CAN_SPAWN:
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
                order.folder = os.open(order.cwd, flags)
            if order.pty:
                # Only here: what few jobs need is loaded when the first one needs it.
                from forge_actors.edges.node.agent import forked

                return forked.with_terminal(order, self._cgroups)
            return self._with_pipes(order)
        except SpawnFailed:
            order.let_go()
            raise
        except (OSError, ValueError) as error:
            order.let_go()
            crowded = isinstance(error, OSError) and error.errno in NO_ROOM
            failure = NoRoom if crowded else SpawnFailed
            raise failure(_explain(order, error)) from None

    def _with_pipes(self, order: Order) -> Child:
        stdin = self._null
        pipes: list[int] = []
        try:
            if order.stdin is not None:
                stdin = _open_stdin(order.stdin)
            # Not O_NONBLOCK for pipe2: that would hold for the job's end as well.
            pipes += os.pipe()
            pipes += os.pipe()
            os.set_blocking(pipes[0], False)
            os.set_blocking(pipes[2], False)
            if order.limits is None and _CAN_SPAWN:
                pid = _spawn(order, stdin, pipes[1], pipes[3])
            else:
                from forge_actors.edges.node.agent import forked

                streams = (stdin, pipes[1], pipes[3])
                pid = forked.start(order, self._cgroups, streams)
        except BaseException:
            for fd in pipes[::2]:
                os.close(fd)
            raise
        finally:
            if stdin != self._null:
                os.close(stdin)
            for fd in pipes[1::2]:
                os.close(fd)
        return pid, pipes[0], pipes[2], None

    def close(self) -> None:
        """Leave nothing behind."""
        self._cgroups.close()


def _spawn(order: Order, stdin: int, stdout: int, stderr: int) -> int:
    streams = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, stdout, 1),
        (os.POSIX_SPAWN_DUP2, stderr, 2),
    ]
    if order.step is not None and order.folder is not None:
        streams.append((os.POSIX_SPAWN_DUP2, order.folder, FOLDER))
    for number, fd in enumerate(order.descriptors, FIRST):
        streams.append((os.POSIX_SPAWN_DUP2, fd, number))
    # The child begins in our folder. Nothing of ours is named from there, and there is
    # one thread.
    os.chdir(order.cwd)
    try:
        if order.worktree is not None:
            order.worktree.check()
        return os.posix_spawn(
            _program(order),
            order.argv,
            order.env,
            file_actions=streams,
            setsid=True,
            setsigdef=_IGNORED,
        )
    finally:
        # Ours must not be what keeps a folder from being removed or unmounted.
        os.chdir("/")
        if order.step is not None:
            order.let_go()


def _program(order: Order) -> bytes:
    """The file to run, looked for in the PATH of the job and not in ours."""
    name = order.argv[0]
    if b"/" in name:
        return name
    found = None
    for folder in order.env.get(b"PATH", os.defpath.encode()).split(b":"):
        path = os.path.join(folder, name)
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return path
        if found is None and os.path.exists(path):
            found = path
    if found is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def readable(name: bytes) -> str:
    """For a message. Not as fsdecode: its surrogates could not be read as UTF-8."""
    return name.decode(errors="replace")


def _open_stdin(path: bytes) -> int:
    # O_NONBLOCK: opening a FIFO without a writer would stop the agent, for ever.
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        name = readable(path)
        message = f"the stdin file {name} cannot be read: {error.strerror}"
        raise SpawnFailed(message) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise SpawnFailed(f"the stdin file {readable(path)} is not a plain file")
    os.set_blocking(fd, True)
    return fd


def _explain(order: Order, error: OSError | ValueError) -> str:
    """One sentence; the error does not tell the folder and the program apart."""
    program = readable(order.argv[0])
    cwd = readable(order.cwd)
    if not isinstance(error, OSError):
        return f"the command cannot be passed to the system: {error}"
    if not os.path.isdir(order.cwd):
        what = "is not a folder" if os.path.lexists(order.cwd) else "does not exist"
        return f"the working folder {cwd} {what}"
    if not os.access(order.cwd, os.X_OK):
        return f"the working folder {cwd} may not be entered: permission denied"
    path = os.path.join(order.cwd, order.argv[0])
    if isinstance(error, FileNotFoundError):
        if b"/" not in order.argv[0]:
            where = readable(order.env.get(b"PATH", os.defpath.encode()))
            return f"there is no program {program} in PATH ({where})"
        if os.path.exists(path):
            return f"the interpreter that {program} names does not exist"
        return f"there is no program {program}"
    if isinstance(error, PermissionError):
        what = "is a folder" if os.path.isdir(path) else "permission denied"
        return f"the program {program} may not be run: {what}"
    if error.errno == errno.E2BIG:
        return f"the arguments and the environment of {program} are too long"
    return f"the program {program} could not be started: {error.strerror}"
