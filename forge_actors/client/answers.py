"""Answers of the service as they come: bytes, or JSON lines as values."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import anyio

from forge_actors.client.errors import broke_off, from_answer
from forge_actors.client.sync import READ_BYTES
from forge_actors.client.wire import ResponseReader, WireError
from forge_actors.domain.requests import convert

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import SocketStream

    from forge_actors.domain.errors import Unavailable

T = TypeVar("T")


class Answer:
    """The body of one answer, piece by piece; closes its connection at the end."""

    def __init__(
        self, connection: SocketStream, request: bytes, home: str, *, asks: bool
    ) -> None:
        """`asks`: the request changes nothing."""
        self._connection = connection
        self._request = request
        self._home = home
        self._unheard = asks
        self._reader = ResponseReader()

    async def __aenter__(self) -> Self:
        try:
            # A service that refuses a body answers before it has read all of it.
            with suppress(anyio.BrokenResourceError):
                await self._connection.send(self._request)
        except BaseException:
            await anyio.aclose_forcefully(self._connection)
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connection.aclose()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        refusal = b""
        while not self._reader.complete:
            piece = await self._receive()
            status = self._reader.status
            if status is not None and status >= 400:
                refusal += piece
                if self._reader.complete:
                    raise from_answer(status, refusal)
            elif piece:
                return piece
        raise StopAsyncIteration

    async def _receive(self) -> bytes:
        try:
            data = await self._connection.receive(READ_BYTES)
            self._unheard = False
            return self._reader.feed(data)
        except anyio.EndOfStream:
            try:
                self._reader.end()
            except WireError:
                raise self._broke_off() from None
            return b""
        except (anyio.BrokenResourceError, WireError):
            raise self._broke_off() from None

    def _broke_off(self) -> Unavailable:
        return broke_off(self._home, unheard=self._unheard)


class Lines(Generic[T]):
    """JSON lines as values."""

    def __init__(self, pieces: AsyncIterator[bytes], wanted: type[T]) -> None:
        self._pieces = pieces
        self._wanted = wanted
        self._rest = b""
        self._lines: list[bytes] = []

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        while not self._lines:
            *lines, self._rest = (self._rest + await anext(self._pieces)).split(b"\n")
            self._lines = lines[::-1]
        return convert(json.loads(self._lines.pop()), self._wanted)
