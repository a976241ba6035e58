"""The client for other programs: every verb over the service's socket, on anyio.

It runs under trio and under asyncio. Each call has a connection of its own; a call
that is cancelled closes it, and the service drops what it held for it.

    async with forge_actors.client.connect() as client:
        job = await client.submit("app", ["make", "test"], kind="check")
        [view] = await client.wait(job.id)
"""

from __future__ import annotations

import json
import os
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

import anyio

from forge_actors.client.errors import broke_off, from_answer, no_service
from forge_actors.client.home import resolve_home, socket_path
from forge_actors.client.sync import READ_BYTES, target
from forge_actors.client.wire import ResponseReader, WireError, encode_request
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import JobView
from forge_actors.domain.repositories import RepositoryView
from forge_actors.domain.requests import (
    Accepted,
    Explanation,
    JobQuery,
    JobRequest,
    convert,
    encode_argv,
)
from forge_actors.domain.settings import SettingChange, SettingView

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from anyio.abc import SocketStream

    from forge_actors.client.sync import Parameters

T = TypeVar("T")


@asynccontextmanager
async def connect(
    home: str | os.PathLike[str] | None = None,
) -> AsyncGenerator[Client, None]:
    """A client of the service of `home`.

    Raises:
        Unavailable: no service runs there.
    """
    client = Client(resolve_home(None if home is None else str(home)))
    async with await client.open():
        pass
    yield client


class Client:
    """The service of one home. Every method may raise what the service answers with."""

    def __init__(self, home: str) -> None:
        self.home = home

    async def submit(
        self, repo: str | os.PathLike[str], argv: Sequence[str], **options: Any
    ) -> Accepted:
        """Queue one job; the options are the fields of JobRequest.

        A `repo` that is a path object is a folder, text is a name or a folder.
        """
        place = repo if isinstance(repo, str) else os.path.abspath(repo)
        request = JobRequest(repo=place, argv=encode_argv(argv), **options)
        return (await self.submit_all([request]))[0]

    async def submit_all(self, requests: Sequence[JobRequest]) -> list[Accepted]:
        """Queue all of the jobs or none. They are durable when this returns."""
        jobs = [
            {name: getattr(request, name) for name in request.__struct_fields__}
            for request in requests
        ]
        answer = await self._call("POST", "jobs", body={"jobs": jobs})
        return convert(answer["jobs"], list[Accepted])

    async def jobs(self, query: JobQuery | None = None) -> list[JobView]:
        """One page of jobs, the newest first."""
        wanted = query or JobQuery()
        answer = await self._call("GET", "jobs", query=_parameters(wanted))
        return convert(answer["jobs"], list[JobView])

    async def job(self, selector: str) -> JobView:
        return convert(await self._call("GET", "jobs", selector), JobView)

    async def why(self, selector: str) -> Explanation:
        return convert(await self._call("GET", "jobs", selector, "why"), Explanation)

    async def cancel(self, selector: str, *, grace: float | None = None) -> JobView:
        answer = await self._call(
            "POST", "jobs", selector, "cancel", body={"grace": grace}
        )
        return convert(answer, JobView)

    async def wait(
        self, *selectors: str, timeout: float | None = None
    ) -> list[JobView]:
        """Return when every one of the jobs has ended.

        Raises:
            TimeoutError: `timeout` seconds passed first.
        """
        body = {"jobs": selectors, "timeout": timeout}
        answer = await self._call("POST", "wait", body=body)
        if answer["timed_out"]:
            raise TimeoutError(f"the jobs have not ended within {timeout} s")
        return convert(answer["jobs"], list[JobView])

    async def status(self) -> dict[str, Any]:
        status: dict[str, Any] = await self._call("GET", "status")
        return status

    async def settings(self) -> list[SettingView]:
        """Every setting in force, with where it comes from."""
        answer = await self._call("GET", "settings")
        return convert(answer["settings"], list[SettingView])

    async def reload_settings(self) -> list[SettingChange]:
        """Let the service read its settings again; what changed."""
        answer = await self._call("POST", "settings", "reload")
        return convert(answer["changed"], list[SettingChange])

    async def stop(self) -> None:
        """Begin an orderly stop of the service."""
        await self._call("POST", "stop")

    async def repositories(self) -> list[RepositoryView]:
        answer = await self._call("GET", "repositories")
        return convert(answer["repositories"], list[RepositoryView])

    async def repository(self, name: str) -> RepositoryView:
        return convert(await self._call("GET", "repositories", name), RepositoryView)

    async def add_repository(
        self, path: str | os.PathLike[str], name: str | None = None
    ) -> RepositoryView:
        body = {"path": str(path), "name": name}
        answer = await self._call("POST", "repositories", body=body)
        return convert(answer, RepositoryView)

    async def enable_repository(self, name: str, *, enabled: bool) -> RepositoryView:
        """Let its jobs start, or start nothing new."""
        verb = "enable" if enabled else "disable"
        return convert(
            await self._call("POST", "repositories", name, verb), RepositoryView
        )

    async def remove_repository(
        self, name: str, *, cancel: bool = False
    ) -> RepositoryView:
        answer = await self._call(
            "DELETE", "repositories", name, query=[("cancel", int(cancel))]
        )
        return convert(answer, RepositoryView)

    @asynccontextmanager
    async def logs(
        self,
        selector: str,
        stream: str = "both",
        *,
        follow: bool = False,
        tail: int | None = None,
        raw: bool = False,
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Iterate over the output; with `follow` until the job has ended.

        Secrets that are recognised are redacted; `raw` is for the exact bytes.
        """
        query = [("follow", int(follow)), ("tail", tail), ("raw", int(raw))]
        path = ("jobs", selector, "logs", stream)
        async with await self._send("GET", path, query=query) as answer:
            yield answer

    @asynccontextmanager
    async def events(
        self, after: int = 0, *, limit: int = 100, follow: bool = False
    ) -> AsyncGenerator[AsyncIterator[Event], None]:
        """Iterate over the events behind `after`; with `follow` without an end."""
        query = [("after", after), ("limit", limit), ("follow", int(follow))]
        async with await self._send("GET", ("events",), query=query) as answer:
            yield _Lines(answer, Event)

    async def open(self) -> SocketStream:
        """One connection to the service."""
        try:
            return await anyio.connect_unix(socket_path(self.home))
        except OSError:
            raise no_service(self.home) from None

    async def _call(
        self,
        method: str,
        *path: str,
        body: object = None,
        query: Parameters = (),
    ) -> Any:
        async with await self._send(method, path, body=body, query=query) as answer:
            whole = b"".join([piece async for piece in answer])
        return json.loads(whole)

    async def _send(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        body: object = None,
        query: Parameters = (),
    ) -> _Answer:
        data = None if body is None else json.dumps(body).encode("ascii")
        request = encode_request(method, target(path, query), data)
        return _Answer(await self.open(), request, self.home)


class _Answer:
    """The body of one answer, piece by piece; closes its connection at the end."""

    def __init__(self, connection: SocketStream, request: bytes, home: str) -> None:
        self._connection = connection
        self._request = request
        self._home = home
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
            return self._reader.feed(await self._connection.receive(READ_BYTES))
        except anyio.EndOfStream:
            try:
                self._reader.end()
            except WireError:
                raise broke_off(self._home) from None
            return b""
        except (anyio.BrokenResourceError, WireError):
            raise broke_off(self._home) from None


class _Lines(Generic[T]):
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


def _parameters(query: JobQuery) -> list[tuple[str, str | int | None]]:
    lists: tuple[tuple[str, Sequence[str]], ...] = (
        ("repo", query.repo),
        ("state", query.state),
        ("kind", query.kind),
        ("label", query.label),
    )
    return [
        *((name, value) for name, values in lists for value in values),
        ("active", int(query.active)),
        ("limit", query.limit),
        ("before", query.before),
    ]
