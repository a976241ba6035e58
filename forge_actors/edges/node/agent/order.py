"""An order from the service: checked, and made into a running child.

Texts that are bytes to the system (arguments, environment, paths) travel as latin-1,
one character a byte, so that every byte passes through JSON.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.edges.node.agent.terminal import Terminal

from forge_actors.edges.node.agent.masking import masked_values


class Malformed(ValueError):
    """A message that no service of this version sends."""


#: A process, and where its stdout and its stderr come from. With a terminal that is
#: the former, and the latter is -1.
Child = tuple["subprocess.Popen[bytes]", int, int, "Terminal | None"]


class SpawnFailed(Exception):
    """The job could not be started; the message is one sentence for the user."""


class Order:
    """See `domain.launch.LaunchOrder`; here as the agent needs it."""

    __slots__ = (
        "after_job",
        "argv",
        "cwd",
        "env",
        "fence",
        "grace",
        "idle",
        "keep_leftovers",
        "key",
        "limits",
        "log",
        "masked",
        "output_limit",
        "pty",
        "stdin",
        "stop_signal",
        "wall",
    )

    # Any: the one place where decoded JSON becomes typed values.
    def __init__(self, message: dict[str, Any], base: dict[bytes, bytes]) -> None:
        """Take the order out of a message; `base` is what every job has in its env.

        Raises:
            Malformed: a field is missing or not what it should be.
        """
        try:
            self.key: tuple[str, int] = (message["job"], message["attempt"])
            self.fence: int = message["fence"]
            self.argv = [_bytes(text) for text in message["argv"]]
            self.cwd = _bytes(message["cwd"])
            self.env = {**base, **environment(message["env"])}
            self.masked = self._add_secrets(message.get("secrets"))
            stdin: str | None = message["stdin"]
            self.stdin = None if stdin is None else _bytes(stdin)
            self.log = _bytes(message["log"])
            self.output_limit = int(message["output_limit"])
            self.wall: float | None = message["wall"]
            self.idle: float | None = message["idle"]
            self.stop_signal = int(signal.Signals[message["stop_signal"]])
            self.grace = float(message["grace"])
            self.keep_leftovers = bool(message["keep_leftovers"])
            # Not sent when they have their default.
            self.pty = bool(message.get("pty"))
            self.limits: dict[str, int] | None = message.get("limits")
            after: str | None = message.get("after_job")
            self.after_job = None if after is None else _bytes(after)
        except Malformed:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Malformed(f"malformed order: {error!r}") from None
        if not self.argv:
            raise Malformed("malformed order: the command is empty")

    def _add_secrets(self, texts: dict[str, str] | None) -> tuple[bytes, ...]:
        """Put the secrets into the environment; what to mask of them in the output."""
        if not texts:
            return ()
        try:
            secrets = environment(texts)
        except ValueError:  # it would repeat the value
            raise Malformed("malformed order: a secret is no bytes") from None
        self.env |= secrets
        return masked_values(secrets.values())


def environment(texts: dict[str, str]) -> dict[bytes, bytes]:
    """An environment as the system has it."""
    return {_bytes(name): _bytes(value) for name, value in texts.items()}


def _readable(name: bytes) -> str:
    # Not fsdecode: its surrogates are no UTF-8, and the receipt could not be read.
    return name.decode(errors="replace")


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


class Spawner:
    """Starts children. Holds /dev/null open: nearly every job reads from it."""

    def __init__(self) -> None:
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def spawn(self, order: Order) -> Child:
        """Start the child.

        Raises:
            SpawnFailed: it does not run, and nothing of it is left.
        """
        if order.pty:
            return _spawn_with_terminal(order)
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
            child = _popen(order, stdin, pipes[1], pipes[3], _preparation(order))
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            for fd in pipes[::2]:
                os.close(fd)
            raise SpawnFailed(_explain(order, error)) from None
        finally:
            if stdin != self._null:
                os.close(stdin)
            for fd in pipes[1::2]:
                os.close(fd)
        return child, pipes[0], pipes[2], None


def _spawn_with_terminal(order: Order) -> Child:
    # Only here: what few jobs need is loaded when the first one needs it.
    from forge_actors.edges.node.agent.terminal import TERM, Terminal, take_control

    limit = _preparation(order)

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
        child = _popen(order, end, end, end, prepare)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        terminal.close()
        raise SpawnFailed(_explain(order, error)) from None
    return child, terminal.fd, -1, terminal


def _preparation(order: Order) -> Callable[[], None] | None:
    """What the child does before it becomes the program.

    Nothing, for nearly all jobs: with anything to do, Popen cannot use vfork.
    """
    if order.limits is None:
        return None
    from forge_actors.edges.node.agent.limits import Preparation, decode

    return Preparation(decode(order.limits))


def _popen(
    order: Order,
    stdin: int,
    stdout: int,
    stderr: int,
    prepare: Callable[[], None] | None,
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        order.argv,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=order.cwd,
        env=order.env,
        start_new_session=True,
        close_fds=True,
        preexec_fn=prepare,  # noqa: PLW1509 - the agent has one thread
    )


def _open_stdin(path: bytes) -> int:
    # O_NONBLOCK: opening a FIFO without a writer would stop the agent, for ever.
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        name = _readable(path)
        message = f"the stdin file {name} cannot be read: {error.strerror}"
        raise SpawnFailed(message) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise SpawnFailed(f"the stdin file {_readable(path)} is not a plain file")
    os.set_blocking(fd, True)
    return fd


def _explain(
    order: Order, error: OSError | ValueError | subprocess.SubprocessError
) -> str:
    """One sentence; Popen itself does not tell the folder and the program apart."""
    if isinstance(error, subprocess.SubprocessError):
        return "the terminal or the limits of the job could not be set up"
    program = _readable(order.argv[0])
    cwd = _readable(order.cwd)
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
            where = _readable(order.env.get(b"PATH", os.defpath.encode()))
            return f"there is no program {program} in PATH ({where})"
        if os.path.exists(path):
            return f"the interpreter that {program} names does not exist"
        return f"there is no program {program}"
    if isinstance(error, PermissionError):
        what = "is a folder" if os.path.isdir(path) else "permission denied"
        return f"the program {program} may not be run: {what}"
    return f"the program {program} could not be started: {error.strerror}"
