"""A receiver of webhooks on this machine, which answers as a test tells it."""

from __future__ import annotations

import queue
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from forge_actors.testing.sender_contract import Came

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from forge_actors.testing.sender_contract import Told


class Receiver:
    """`port` is where it is. The last answer holds from then on; each path has the
    same answers."""

    def __init__(self, answers: Sequence[Told]) -> None:
        self._answers = list(answers)
        self._lock = threading.Lock()
        self.came: list[Came] = []
        #: The same, for those who wait for them.
        self.arrived: queue.Queue[Came] = queue.Queue()
        self.connections = 0
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def setup(self) -> None:
                receiver.connections += 1
                super().setup()

            def do_POST(self) -> None:
                receiver._answer(self)

            def log_message(self, *_: object) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/secret-path?a=b"

    def tell(self, *answers: Told) -> None:
        """Answer so from now on."""
        with self._lock:
            self._answers = list(answers)

    def _answer(self, request: BaseHTTPRequestHandler) -> None:
        body = request.rfile.read(int(request.headers["content-length"]))
        headers = {name.lower(): value for name, value in request.headers.items()}
        with self._lock:
            answers = self._answers
            told = answers[0] if len(answers) == 1 else answers.pop(0)
            came = Came(request.path, headers, body)
            self.came.append(came)
        self.arrived.put(came)
        if told is None:
            request.close_connection = True
            return
        status, after = told if isinstance(told, tuple) else (told, None)
        request.send_response(status)
        if after is not None:
            request.send_header("retry-after", str(after))
        if status == 302:
            request.send_header("location", "/elsewhere")
        request.send_header("content-length", "0")
        request.end_headers()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def receiving(*answers: Told) -> Iterator[Receiver]:
    receiver = Receiver(answers or (200,))
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.stop()
