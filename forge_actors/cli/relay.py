"""Carries the messages of an agent to the service and back, across its restarts.

A message is a line of JSON. What was asked of a service that ended is answered with an
error, and the next message goes to the one that runs then: nobody waits in between, and
a session that was begun is begun again there, without a word to the agent.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from forge_actors.domain.errors import ForgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Json = dict[str, Any]

READ_BYTES = 64 * 1024
INPUT, OUTPUT = 0, 1
#: Seconds for the service to answer what was asked just before the agent ended.
LAST_SECONDS = 5.0
SERVER_ERROR = -32000
LOST = (
    "the service ended before it answered: whether it was done is not known, so look"
    " with `jobs` or `show` before you ask for it again"
)


class Relay:
    """One agent. `connect` gives a connection to the service, already introduced."""

    def __init__(self, connect: Callable[[], socket.socket]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._connection: socket.socket | None = None
        self._reader: threading.Thread | None = None
        #: The requests without an answer, by their ids as JSON.
        self._pending: dict[str, Json] = {}
        #: What began the session, to begin it anew, and the answer not to be told then.
        self._beginning: list[bytes] = []
        self._untold: str | None = None

    def run(self) -> None:
        """Carry until the agent closes its end.

        Raises:
            ForgeError: no service can be reached at the start.
        """
        self._open()
        for line in _lines(lambda: os.read(INPUT, READ_BYTES)):
            self._take(line)
        with self._lock:
            connection, reader = self._connection, self._reader
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)
        if reader is not None:
            reader.join(LAST_SECONDS)

    def _take(self, line: bytes) -> None:
        message = _message(line)
        method = message.get("method")
        if method == "initialize":
            self._beginning = []
        asks = method is not None and "id" in message
        try:
            connection = self._begin(message if asks else None)
        except ForgeError as error:
            if asks:
                self._write(_failure(message, f"{error}; nothing was done"))
            return
        if method == "initialize":
            self._beginning = [line]
        elif method == "notifications/initialized":
            self._beginning = [*self._beginning[:1], line]
        # If it is gone by now, that is seen where its answers are read.
        with suppress(OSError):
            connection.sendall(line)

    def _begin(self, request: Json | None) -> socket.socket:
        """A connection that this request can be sent on: should it end, it is answered.

        Raises:
            ForgeError: no service can be reached.
        """
        while True:
            with self._lock:
                connection = self._connection
                if connection is not None:
                    if request is not None:
                        self._pending[_key(request)] = request
                    return connection
            self._open()

    def _open(self) -> None:
        connection = self._connect()
        if self._beginning:
            self._untold = _key(_message(self._beginning[0]))
            with suppress(OSError):
                connection.sendall(b"".join(self._beginning))
        reader = threading.Thread(target=self._read, args=(connection,), daemon=True)
        with self._lock:
            self._connection, self._reader = connection, reader
        reader.start()

    def _read(self, connection: socket.socket) -> None:
        try:
            for line in _lines(lambda: connection.recv(READ_BYTES)):
                self._answer(line)
        finally:
            with self._lock:
                lost, self._pending = self._pending, {}
                self._connection = None
            connection.close()
            for message in lost.values():
                self._write(_failure(message, LOST))

    def _answer(self, line: bytes) -> None:
        message = _message(line)
        if "method" not in message and "id" in message:
            key = _key(message)
            if key == self._untold:
                self._untold = None
                return
            with self._lock:
                self._pending.pop(key, None)
        self._write(line)

    def _write(self, line: bytes) -> None:
        # An agent that reads nothing any more has ended, and its input says so.
        with self._writing, suppress(OSError):
            view = memoryview(line)
            while view:
                view = view[os.write(OUTPUT, view) :]


def _lines(read: Callable[[], bytes]) -> Iterator[bytes]:
    """What is read, line by line, each with its end; also the last, if it has none."""
    rest = b""
    with suppress(ConnectionError):
        while data := read():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield line + b"\n"
    if rest:
        yield rest + b"\n"


def _message(line: bytes) -> Json:
    """As much of a line as can be understood; what cannot be, the service refuses."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _key(message: Json) -> str:
    return json.dumps(message.get("id"))


def _failure(message: Json, problem: str) -> bytes:
    """An error as an answer: that of a tool in the form that an agent is shown."""
    answer: Json = {"jsonrpc": "2.0", "id": message.get("id")}
    if message.get("method") == "tools/call":
        content = [{"type": "text", "text": problem}]
        answer["result"] = {"content": content, "isError": True}
        answer["result"]["resultType"] = "complete"
    else:
        answer["error"] = {"code": SERVER_ERROR, "message": problem}
    return json.dumps(answer).encode() + b"\n"
