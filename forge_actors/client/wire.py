"""The bytes of HTTP/1.1 as a client needs them, without any input or output.

Only what our own service sends is understood: a status, headers, and a body framed by
its length, by chunks or by the end of the connection.
"""

from __future__ import annotations

MAX_HEAD = 64 * 1024
_END_OF_HEAD = b"\r\n\r\n"


class WireError(Exception):
    """The other end does not speak as our service does, or broke off."""


def encode_request(
    method: str,
    target: str,
    body: bytes | None = None,
    *,
    job: str | None = None,
    trace: str | None = None,
) -> bytes:
    """One request; the connection closes after its answer. `job` is the one that we are
    a part of, `trace` what our span is (W3C)."""
    head = [f"{method} {target} HTTP/1.1", "host: localhost", "connection: close"]
    if job is not None:
        head.append(f"forge-job: {job}")
    if trace is not None and method == "POST":
        head.append(f"traceparent: {trace}")
    if body is not None:
        head += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode("ascii") + (body or b"")


class ResponseReader:
    """Takes the bytes of one response in any pieces and gives back those of its body.

    `status` is None until the head is complete; `complete` tells that all has come.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self.complete = False
        self._buffer = bytearray()
        self._chunked = False
        #: Bytes that the body, or the present chunk, still has; None: until the end.
        self._left: int | None = 0
        self._in_chunk = False

    def feed(self, data: bytes) -> bytes:
        """The part of the body that `data` completes.

        Raises:
            WireError: this is no HTTP.
        """
        self._buffer += data
        if self.status is None and not self._read_head():
            return b""
        if self.complete:
            return b""
        return self._read_chunks() if self._chunked else self._read_plain()

    def end(self) -> None:
        """The other end closed the connection.

        Raises:
            WireError: before the response was complete.
        """
        if self.status is not None and not self._chunked and self._left is None:
            self.complete = True
        if not self.complete:
            raise WireError("the connection closed in the middle of an answer")

    def _read_head(self) -> bool:
        end = self._buffer.find(_END_OF_HEAD)
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise WireError("the head of the answer has no end")
            return False
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + len(_END_OF_HEAD)]
        version, _, rest = first.partition(" ")
        code = rest[:3]
        if not version.startswith("HTTP/1.") or not code.isdecimal():
            raise WireError("the answer is no HTTP")
        if code.startswith("1"):  # an interim answer; the real one follows
            return self._read_head()
        self.status = int(code)
        for line in lines:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self._frame()
        return True

    def _frame(self) -> None:
        length = self.headers.get("content-length")
        if "chunked" in self.headers.get("transfer-encoding", ""):
            self._chunked = True
        elif length is not None:
            if not length.isdecimal():
                raise WireError("the answer's length is no number")
            self._left = int(length)
        elif self.status in (204, 304):
            self._left = 0
        else:
            self._left = None
        self.complete = not self._chunked and self._left == 0

    def _read_plain(self) -> bytes:
        if self._left is None:
            taken = bytes(self._buffer)
            self._buffer.clear()
            return taken
        taken = bytes(self._buffer[: self._left])
        self._buffer.clear()
        self._left -= len(taken)
        self.complete = self._left == 0
        return taken

    def _read_chunks(self) -> bytes:
        taken = bytearray()
        while not self.complete:
            if not self._in_chunk:
                if not self._read_chunk_size():
                    break
                continue
            assert self._left is not None
            piece = self._buffer[: self._left]
            del self._buffer[: self._left]
            taken += piece
            self._left -= len(piece)
            if self._left or len(self._buffer) < 2:
                break
            if self._buffer[:2] != b"\r\n":
                raise WireError("a chunk is longer than it says")
            del self._buffer[:2]
            self._in_chunk = False
        return bytes(taken)

    def _read_chunk_size(self) -> bool:
        end = self._buffer.find(b"\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise WireError("a chunk has no size")
            return False
        try:
            size = int(bytes(self._buffer[:end]).partition(b";")[0], 16)
        except ValueError:
            raise WireError("a chunk's size is no number") from None
        if size:
            del self._buffer[: end + 2]
            self._left = size
            self._in_chunk = True
            return True
        # The last chunk: trailers, none of ours, then an empty line.
        if self._buffer.find(_END_OF_HEAD, end) != end:
            if len(self._buffer) > end + 4:
                raise WireError("the answer has trailers")
            return False
        del self._buffer[: end + 4]
        self.complete = True
        return True
