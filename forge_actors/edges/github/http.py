"""One request to GitHub, within its time, its size and its server.

Certificates are checked with what the system trusts. The proxy of the environment is
used, but not for this machine. No redirect is followed here and no cookie is kept.
"""

from __future__ import annotations

import http.cookiejar
import logging
import os
import socket
import ssl
import zlib
from typing import TYPE_CHECKING

import httpx2
import trio

from forge_actors.domain.github.answers import Answer
from forge_actors.domain.github.issues import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    MAX_BODY,
    PARALLEL,
    GitHubFailed,
)
from forge_actors.domain.github.places import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

#: Headers that are looked at.
WANTED = (
    *("date", "etag", "link", "location", "retry-after", "content-encoding"),
    *("x-github-request-id", "x-poll-interval"),
    *("x-ratelimit-remaining", "x-ratelimit-reset"),
)
#: Characters of a header that is looked at; a longer one is as good as none.
MAX_HEADER = 8192
_GZIP = 16 + zlib.MAX_WBITS


class Http:
    """Connections to one server, four at most. Nothing is open before it is used."""

    def __init__(
        self,
        base: str,
        context: ssl.SSLContext | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._base = base
        self._context = context
        self._seconds = seconds
        self._client: httpx2.AsyncClient | None = None
        self._making = trio.Lock()

    async def get(self, url: str, headers: Mapping[str, str], what: str) -> Answer:
        """What the server answers; `what` names the question in errors.

        Raises:
            GitHubFailed: there is no answer, or none that can be used.
        """
        return await self._send("GET", url, headers, what)

    async def post(
        self, url: str, headers: Mapping[str, str], what: str, body: bytes
    ) -> Answer:
        """The same for something that is told. Without an answer nobody knows whether
        it was heard."""
        return await self._send("POST", url, headers, what, body)

    async def _send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        what: str,
        body: bytes | None = None,
    ) -> Answer:
        client = await self._open()
        try:
            with trio.fail_after(self._seconds):
                sent = client.stream(method, url, headers=dict(headers), content=body)
                return await self._answer(sent, what)
        except trio.TooSlowError:
            why = f"took longer than {self._seconds:g} s"
            raise GitHubFailed("unavailable", f"GitHub {why}: {what}") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise GitHubFailed(
                "unavailable", f"GitHub cannot be reached for {what}: {_why(error)}"
            ) from None

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with trio.CancelScope(shield=True):
                await client.aclose()

    async def _open(self) -> httpx2.AsyncClient:
        async with self._making:
            if self._client is None:
                if self._base.startswith("http:"):
                    self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                elif self._context is None:
                    # It reads hundreds of certificates.
                    self._context = await trio.to_thread.run_sync(
                        httpx2.create_ssl_context
                    )
                self._client = self._made(self._context)
            return self._client

    def _made(self, context: ssl.SSLContext) -> httpx2.AsyncClient:
        for library in ("httpx2", "httpcore2"):
            # They tell every request, and what came with it.
            logging.getLogger(library).setLevel(logging.WARNING)
        nobody = http.cookiejar.DefaultCookiePolicy(allowed_domains=())
        return httpx2.AsyncClient(
            verify=context,
            trust_env=not is_loopback(self._base),
            follow_redirects=False,
            timeout=httpx2.Timeout(self._seconds, connect=CONNECT_SECONDS, pool=None),
            limits=httpx2.Limits(max_connections=PARALLEL),
            cookies=http.cookiejar.CookieJar(nobody),
        )

    async def _answer(
        self, sent: AbstractAsyncContextManager[httpx2.Response], what: str
    ) -> Answer:
        async with sent as response:
            known = {
                name: value
                for name in WANTED
                if len(value := response.headers.get(name, "")) <= MAX_HEADER and value
            }
            unpack = _Unpacker(known.get("content-encoding", ""), what)
            # The library leaves its streams open unless it is ended from within.
            with trio.CancelScope() as scope:
                async for chunk in response.aiter_raw():
                    if not unpack.feed(chunk):
                        scope.cancel()
            return Answer(response.status_code, known, unpack.whole())


class _Unpacker:
    """A body of bounded size: nothing is unpacked beyond the bound."""

    def __init__(self, encoding: str, what: str) -> None:
        self._what = what
        self._parts: list[bytes] = []
        self._left = MAX_BODY
        self._gzip = None
        #: Why it cannot be used.
        self._bad = ""
        if encoding.strip().lower() in ("gzip", "x-gzip"):
            self._gzip = zlib.decompressobj(_GZIP)
        elif encoding.strip().lower() not in ("", "identity"):
            self._bad = "packed in a way that was not offered"

    def feed(self, chunk: bytes) -> bool:
        """Take in a part; whether the rest is of use."""
        if self._gzip is not None and not self._bad:
            try:
                chunk = self._gzip.decompress(chunk, self._left + 1)
            except zlib.error:
                self._bad = "not packed as it says"
        self._left -= len(chunk)
        if self._left < 0:
            self._bad = f"larger than {MAX_BODY >> 20} MiB"
        if self._bad:
            return False
        self._parts.append(chunk)
        return True

    def whole(self) -> bytes:
        """All of it.

        Raises:
            GitHubFailed: it cannot be used, or a part of it is missing.
        """
        if self._bad:
            raise GitHubFailed(
                "malformed", f"the answer to {self._what} is {self._bad}"
            )
        # An answer without a body says that it is packed, too.
        if self._gzip is not None and self._parts and not self._gzip.eof:
            raise GitHubFailed("unavailable", f"an answer broke off: {self._what}")
        return b"".join(self._parts)


def _why(error: Exception) -> str:
    """In our words: the library's may repeat a URL of a proxy, with its password."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        if isinstance(cause, ssl.SSLError):
            return "a secure connection cannot be made"
        if isinstance(cause, socket.gaierror):
            return "its name is not found"
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno)
        if isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]  # one for each of its addresses
        else:
            cause = cause.__cause__ or cause.__context__
    match error:
        case httpx2.ProxyError():
            return "the proxy does not let us through"
        case httpx2.ConnectTimeout():
            return f"no connection within {CONNECT_SECONDS:g} s"
        case httpx2.TimeoutException():
            return "it did not answer in time"
        case httpx2.RemoteProtocolError() | httpx2.DecodingError():
            return "the answer broke off, or is no HTTP"
        case _:
            return "the connection failed"
