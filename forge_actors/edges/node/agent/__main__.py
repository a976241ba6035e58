"""Start of the node agent: `python -I -S <this file> --fd N --home DIR`.

With `--listen PATH` it outlives the service at the other end of the descriptor.

Not with `-m`: that would import the package by the search path of the user. The agent
is started without one and adds only the folder it was itself loaded from.
"""

from __future__ import annotations

import os
import sys

#: Seconds to wait for the lock of the home.
_LOCK_LIMIT = 0.5


def main() -> int:
    """Serve until nothing is left to do.

    0 when no job runs any more, 3 when the home is still taken, 4 when the socket
    cannot be made.
    """
    import contextlib
    import socket
    import time

    from forge_actors.edges.node.agent import tree
    from forge_actors.edges.node.agent.journal import Journal
    from forge_actors.edges.node.agent.node import Node

    arguments = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
    home = arguments["--home"]
    sock = socket.socket(fileno=int(arguments["--fd"]))
    # Jobs get only the three descriptors we give them, this one least of all: held by
    # a job it would hide the end of the service from us.
    sock.set_inheritable(False)
    receipts = os.path.join(home, "receipts")
    os.makedirs(receipts, mode=0o700, exist_ok=True)
    lock = os.open(
        os.path.join(home, "agent.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
    )
    if not _take(lock):
        print("another node agent still ends the jobs of this home", file=sys.stderr)
        return 3
    _become_subreaper()
    # Time first, so that the names sort by age.
    instance = f"{time.time_ns()}-{os.getpid()}"
    os.ftruncate(lock, 0)
    os.write(lock, instance.encode())
    # That of an agent that is dead. Ours is written once somebody may connect.
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(home, "agent.json"))
    journal = Journal(os.path.join(receipts, instance + ".jsonl"))
    about = {
        "instance": instance,
        "boot_id": tree.boot_id(),
        "namespace": tree.pid_namespace(),
        "pid": os.getpid(),
        "start_ticks": tree.start_ticks(os.getpid()),
    }
    listen = None
    if "--listen" in arguments:
        # All that is ever needed is loaded now: an upgrade replaces our files.
        from forge_actors.edges.node.agent import artifacts, forked  # noqa: F401

        listen = (home, arguments["--listen"])
    try:
        node = Node(sock, journal, about, listen)
    except OSError as error:
        print(f"the node agent cannot listen: {error}", file=sys.stderr)
        journal.close()
        return 4
    node.run()
    journal.close()
    return 0


def _take(lock: int) -> bool:
    """Lock it. Whoever only looks whether an agent lives has it for a moment."""
    import fcntl
    import signal

    def give_up(_number: int, _frame: object) -> None:
        raise BlockingIOError

    signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, _LOCK_LIMIT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
    except BlockingIOError:
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    return True


def _become_subreaper() -> None:
    """Inherit what jobs orphan. Elsewhere than on Linux only groups are followed."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    set_child_subreaper = 36
    ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


if __name__ == "__main__":
    # <root>/forge_actors/edges/node/agent/__main__.py
    root = os.path.abspath(__file__)
    for _ in range(5):
        root = os.path.dirname(root)
    sys.path.append(root)
    sys.exit(main())
