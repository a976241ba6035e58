"""The skeleton's agent: `python -I -S agent.py FD JOURNAL OUTPUT LOGS`. Stdlib only.

It starts what a line of its socket orders, and answers one line when that exited. The
receipt is a plain write to a journal first: it outlives both processes, not the power.
OUTPUT is `pipes` (a log file is made when its first byte comes), `files` or `null`.
"""

import json
import os
import select
import socket
import subprocess
import sys

CHUNK = 65536


class Stream:
    """One output stream of a job: a pipe, and a file from its first byte on."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.source, self.sink = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.sink, True)
        self.log: int | None = None

    def copy(self) -> None:
        """Copy what is there."""
        while True:
            try:
                data = os.read(self.source, CHUNK)
            except BlockingIOError:
                return
            if not data:
                return
            if self.log is None:
                self.log = create(self.path)
            os.write(self.log, data)

    def close(self) -> None:
        self.copy()
        os.close(self.source)
        if self.log is not None:
            os.close(self.log)


def create(path: str) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


class Child:
    """One started job, with its pidfd and what it writes to."""

    def __init__(
        self, job: int, argv: list[str], cwd: str, output: str, logs: str
    ) -> None:
        self.job = job
        paths = f"{logs}/{job}.stdout", f"{logs}/{job}.stderr"
        self.streams: list[Stream] = []
        if output == "pipes":
            self.streams = [Stream(path) for path in paths]
            sinks = [stream.sink for stream in self.streams]
        elif output == "files":
            sinks = [create(path) for path in paths]
        else:
            sinks = [os.open(os.devnull, os.O_WRONLY) for _ in paths]
        try:
            self.process = subprocess.Popen(
                argv,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=sinks[0],
                stderr=sinks[1],
                start_new_session=True,
            )
        finally:
            for sink in sinks:
                os.close(sink)
        self.pidfd = os.pidfd_open(self.process.pid)

    def reap(self) -> bytes:
        """The receipt; the process has exited."""
        os.close(self.pidfd)
        for stream in self.streams:
            stream.close()
        pid, status, usage = os.wait4(self.process.pid, 0)
        code = self.process.returncode = os.waitstatus_to_exitcode(status)
        receipt = [self.job, pid, code, usage.ru_utime, usage.ru_stime]
        return json.dumps(receipt).encode() + b"\n"


def main(fd: int, journal: int, output: str, logs: str) -> None:
    control = socket.socket(fileno=fd)
    poll = select.epoll()
    poll.register(fd, select.EPOLLIN)
    children: dict[int, Child] = {}
    streams: dict[int, Stream] = {}
    rest = b""
    while True:
        answers: list[bytes] = []
        orders: list[bytes] = []
        for ready, _ in poll.poll():
            if ready == fd:
                data = control.recv(CHUNK)
                if not data:
                    return
                *orders, rest = (rest + data).split(b"\n")
            elif ready in children:
                child = children.pop(ready)
                poll.unregister(ready)  # before closing: a vfork child may hold a copy
                for stream in child.streams:
                    poll.unregister(stream.source)
                    del streams[stream.source]
                answers.append(child.reap())
            elif ready in streams:
                streams[ready].copy()
        if answers:
            receipts = b"".join(answers)
            os.write(journal, receipts)
            control.sendall(receipts)
        for order in orders:
            job, argv, cwd = json.loads(order)
            child = Child(job, argv, cwd, output, logs)
            children[child.pidfd] = child
            poll.register(child.pidfd, select.EPOLLIN)
            for stream in child.streams:
                streams[stream.source] = stream
                poll.register(stream.source, select.EPOLLIN | select.EPOLLET)


if __name__ == "__main__":
    main(int(sys.argv[1]), create(sys.argv[2]), sys.argv[3], sys.argv[4])
