"""A program that reads many streams of events, and tells what each of them heard.

`python -m benchmarks.listeners SOCKET IDLE ACTIVE`: it opens the streams, idle ones for
a job that nobody has, prints `ready`, and at the end of its input prints one line of
JSON. Every stream is read as it comes; what is counted is the numbers of the events.
"""

from __future__ import annotations

import json
import os
import re
import resource
import selectors
import socket
import sys
from dataclasses import dataclass, field

_ID = re.compile(rb"^id: (\d+)$", re.MULTILINE)


@dataclass
class Stream:
    """What one stream said; only its last, unfinished line is kept."""

    line: socket.socket
    idle: bool
    seen: list[int] = field(default_factory=list)
    rest: bytes = b""

    def feed(self, data: bytes) -> None:
        whole, _, self.rest = (self.rest + data).rpartition(b"\n")
        self.seen += map(int, _ID.findall(whole))


def main() -> int:
    path, idle, active = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    poll = selectors.DefaultSelector()
    streams = [Stream(_open(path, n < idle), n < idle) for n in range(idle + active)]
    for stream in streams:
        poll.register(stream.line, selectors.EVENT_READ, stream)
    poll.register(0, selectors.EVENT_READ)
    print("ready", flush=True)
    ended = False
    while not ended:
        for key, _ in poll.select():
            if key.data is None:
                ended = not os.read(0, 100)
            elif data := key.data.line.recv(1 << 20):
                key.data.feed(data)
            else:
                poll.unregister(key.data.line)
    # What is on its way still counts.
    for stream in streams:
        stream.line.setblocking(False)
        try:
            while data := stream.line.recv(1 << 20):
                stream.feed(data)
        except BlockingIOError:
            pass
    whole = [stream.seen for stream in streams if not stream.idle]
    heard = {
        "first": min((seen[0] for seen in whole if seen), default=0),
        "last": min((seen[-1] if seen else 0 for seen in whole), default=0),
        "ordered": all(_follow(seen) for seen in whole),
        "idle": sum(len(stream.seen) for stream in streams if stream.idle),
    }
    print(json.dumps(heard), flush=True)
    return 0


def _open(path: str, idle: bool) -> socket.socket:
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    kind = "kind=runtime_stopped" if idle else "format=sse"
    head = f"GET /v1/events?{kind} HTTP/1.1\r\nHost: localhost\r\n"
    line.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
    begun = line.recv(1 << 16)
    if not begun.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"a stream was refused: {begun[:200]!r}")
    return line


def _follow(seen: list[int]) -> bool:
    """None of them is missing or told twice."""
    return not seen or seen == list(range(seen[0], seen[-1] + 1))


if __name__ == "__main__":
    raise SystemExit(main())
