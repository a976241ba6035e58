"""A program that reads many streams of events, and tells what each of them heard.

`python -m benchmarks.listeners SOCKET IDLE ACTIVE`: it opens the streams, idle ones for
a job that nobody has, prints `ready`, and at the end of its input prints one line of
JSON. Every stream is read as it comes; what is counted is the numbers of the events.
"""

from __future__ import annotations

import json
import os
import resource
import selectors
import socket
import sys
from dataclasses import dataclass

#: How the line begins that gives an event its number.
_ID = b"\nid: "


@dataclass
class Stream:
    """The numbers that one stream told; only its unfinished event is kept.

    Looking at each number would take longer than all else that a reader does: without
    gaps the last of a piece is as far from the first as there are numbers in it.
    """

    line: socket.socket
    idle: bool
    first: int = 0
    last: int = 0
    ordered: bool = True
    rest: bytes = b"\n"

    def feed(self, data: bytes) -> None:
        whole, end, rest = (self.rest + data).rpartition(b"\n\n")
        count = whole.count(_ID)
        self.rest = end[1:] + rest
        if not count:
            return
        first = _number(whole, whole.index(_ID))
        last = _number(whole, whole.rindex(_ID))
        if not self.first:
            self.first, self.last = first, first - 1
        if first != self.last + 1 or last - first + 1 != count:
            self.ordered = False
        self.last = last


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
    whole = [stream for stream in streams if not stream.idle]
    heard = {
        "first": min((stream.first for stream in whole if stream.first), default=0),
        "last": min((stream.last for stream in whole), default=0),
        "ordered": all(stream.ordered for stream in whole),
        "idle": sum(bool(stream.first) for stream in streams if stream.idle),
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


def _number(text: bytes, place: int) -> int:
    begin = place + len(_ID)
    end = text.find(b"\n", begin)
    return int(text[begin:] if end < 0 else text[begin:end])


if __name__ == "__main__":
    raise SystemExit(main())
