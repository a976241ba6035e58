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
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from forge_actors.client.answers import Answer, Lines
from forge_actors.client.controllers import ControllerCalls
from forge_actors.client.epics import EpicCalls
from forge_actors.client.errors import not_reached
from forge_actors.client.following import FollowingCalls
from forge_actors.client.home import own_job, own_trace, resolve_home, socket_path
from forge_actors.client.policies import PolicyCalls
from forge_actors.client.repositories import RepositoryCalls
from forge_actors.client.results import ResultCalls
from forge_actors.client.sync import target
from forge_actors.client.templates import TemplateCalls
from forge_actors.client.webhooks import WebhookCalls
from forge_actors.client.wire import encode_request
from forge_actors.domain.events import EventView
from forge_actors.domain.holding import Holding
from forge_actors.domain.jobs import JobView
from forge_actors.domain.pauses import PauseView
from forge_actors.domain.requests import (
    Accepted,
    Explanation,
    JobEdit,
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
    from forge_actors.domain.selection import Selection
    from forge_actors.domain.steering import Steering

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


class Client(
    ResultCalls,
    FollowingCalls,
    WebhookCalls,
    PolicyCalls,
    TemplateCalls,
    ControllerCalls,
    EpicCalls,
    RepositoryCalls,
):
    """The service of one home. Every method may raise what the service answers with."""

    def __init__(self, home: str) -> None:
        self.home = home
        self._job = own_job(home)

    async def submit(
        self, /, repo: str | os.PathLike[str], argv: Sequence[str], **options: Any
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

    async def select(self, selection: Selection) -> list[str]:
        """The ids of the jobs that are meant, the newest first."""
        body = {name: getattr(selection, name) for name in selection.__struct_fields__}
        answer = await self._call("POST", "select", body=body)
        return convert(answer["jobs"], list[str])

    async def job(self, selector: str) -> JobView:
        """One job as it is now."""
        return convert(await self._call("GET", "jobs", selector), JobView)

    async def why(self, selector: str) -> Explanation:
        """Why a job is where it is, and what holds it up."""
        return convert(await self._call("GET", "jobs", selector, "why"), Explanation)

    async def check_fence(self, job: str, attempt: int, fence: int) -> Holding:
        """Whether this attempt is the current one of a job, which its id names."""
        query = (("attempt", attempt), ("fence", fence))
        answer = await self._call("GET", "jobs", job, "fence", query=query)
        return convert(answer, Holding)

    async def cancel(self, selector: str, *, grace: float | None = None) -> JobView:
        """End a job. One that runs is only asked to stop when this returns."""
        answer = await self._call(
            "POST", "jobs", selector, "cancel", body={"grace": grace}
        )
        return convert(answer, JobView)

    async def cancel_all(
        self, selectors: Sequence[str], *, grace: float | None = None
    ) -> list[JobView]:
        """The same for several; those that have ended stay as they are."""
        return await self._bulk("cancel", {"jobs": list(selectors), "grace": grace})

    async def steer_all(self, selectors: Sequence[str], how: Steering) -> list[JobView]:
        """Hold, unhold, pause or resume several jobs, or none if one cannot be."""
        return await self._bulk(how, {"jobs": list(selectors)})

    async def quarantined(self) -> list[dict[str, object]]:
        """The claims that are kept for what ended jobs left, oldest first."""
        return convert(
            (await self._call("GET", "quarantine"))["quarantined"],
            list[dict[str, object]],
        )

    async def release_quarantine(self, selector: str) -> dict[str, object]:
        """Free what is kept for one job, though nothing is proven gone."""
        answer = await self._call("POST", "quarantine", selector, "release", body={})
        return convert(answer, dict[str, object])

    async def _bulk(self, action: str, body: dict[str, object]) -> list[JobView]:
        answer = await self._call("POST", "bulk", action, body=body)
        return convert(answer["jobs"], list[JobView])

    async def hold(self, selector: str) -> JobView:
        """Keep a job that waits from starting, until `unhold`."""
        return await self._steer(selector, "hold")

    async def unhold(self, selector: str) -> JobView:
        """Let a job that is held start again."""
        return await self._steer(selector, "unhold")

    async def pause_job(self, selector: str) -> JobView:
        """Suspend a job that runs, with its whole tree; hold one that waits."""
        return await self._steer(selector, "pause")

    async def resume_job(self, selector: str) -> JobView:
        """Let a job go on that was paused."""
        return await self._steer(selector, "resume")

    async def _steer(self, selector: str, how: str) -> JobView:
        return convert(await self._call("POST", "jobs", selector, how), JobView)

    async def edit(self, selector: str, edit: JobEdit) -> JobView:
        """Change all of the given fields of a job that waits, or none."""
        body = {name: getattr(edit, name) for name in edit.__struct_fields__}
        answer = await self._call("POST", "jobs", selector, "edit", body=body)
        return convert(answer, JobView)

    async def pause(self, scope: str, *, jobs: bool = False) -> list[PauseView]:
        """Start nothing more in `all`, `repo:NAME` or `provider:NAME`; all pauses."""
        body = {"scope": scope, "jobs": jobs}
        answer = await self._call("POST", "pause", body=body)
        return convert(answer["pauses"], list[PauseView])

    async def resume(self, scope: str, *, jobs: bool = False) -> list[PauseView]:
        """End that pause; those that are left."""
        body = {"scope": scope, "jobs": jobs}
        answer = await self._call("POST", "resume", body=body)
        return convert(answer["pauses"], list[PauseView])

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

    async def status(
        self, *, wait: str | None = None, timeout: float | None = None
    ) -> dict[str, Any]:
        """How the service is; with `wait` once it is `ready`, or `idle`.

        Raises:
            TimeoutError: `timeout` seconds passed first.
        """
        limit = None if timeout is None else str(timeout)
        query = [("wait", wait), ("timeout", limit)]
        status: dict[str, Any] = await self._call("GET", "status", query=query)
        if status.pop("timed_out", False):
            raise TimeoutError(f"the service is not {wait} within {timeout} s")
        return status

    async def settings(self) -> list[SettingView]:
        """Every setting in force, with where it comes from."""
        answer = await self._call("GET", "settings")
        return convert(answer["settings"], list[SettingView])

    async def reload_settings(self) -> list[SettingChange]:
        """Let the service read its settings again; what changed."""
        answer = await self._call("POST", "settings", "reload")
        return convert(answer["changed"], list[SettingChange])

    async def drain(self, *, timeout: float | None = None) -> None:
        """Start nothing more, and return when nothing runs.

        Raises:
            TimeoutError: `timeout` seconds passed first; it drains all the same.
            Refused: the drain was cancelled.
        """
        answer = await self._call("POST", "drain", body={"timeout": timeout})
        if answer["timed_out"]:
            raise TimeoutError(f"jobs still run after {timeout} s")

    async def undrain(self) -> None:
        """Work again."""
        await self._call("DELETE", "drain")

    async def stop(self, *, jobs: bool = False) -> int:
        """Begin an orderly stop of the service; how many jobs run at this moment.

        They go on without it, and the next service takes them over; with `jobs` they
        are ended.
        """
        answer = await self._call("POST", "stop", body={"jobs": jobs})
        running: int = answer["running"]
        return running

    @asynccontextmanager
    async def logs(
        self,
        selector: str,
        stream: str = "both",
        *,
        follow: bool = False,
        tail: int | None = None,
        since: str | None = None,
        attempt: int | None = None,
        raw: bool = False,
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Iterate over the output; with `follow` until the job has ended.

        `since` is a time such as `2026-01-02T03:04:05Z` or a span such as `10m`.
        Secrets that are recognised are redacted; `raw` is for the exact bytes.
        """
        query: list[tuple[str, str | int | None]] = [
            ("follow", int(follow)),
            ("tail", tail),
            ("since", since),
            ("attempt", attempt),
            ("raw", int(raw)),
        ]
        path = ("jobs", selector, "logs", stream)
        async with await self._send("GET", path, query=query) as answer:
            yield answer

    @asynccontextmanager
    async def events(
        self,
        after: int | None = None,
        *,
        repo: str | None = None,
        job: str | None = None,
        kind: Sequence[str] = (),
        limit: int = 100,
        follow: bool = False,
    ) -> AsyncGenerator[AsyncIterator[EventView], None]:
        """Iterate over the first `limit` events behind `after`; with `follow` over all,
        until the service ends, or without `after` over those to come.
        """
        query: list[tuple[str, str | int | None]] = [
            ("after", after),
            *(("repo", repo), ("job", job), *(("kind", name) for name in kind)),
            *(("limit", limit), ("follow", int(follow))),
        ]
        async with await self._send("GET", ("events",), query=query) as answer:
            yield Lines(answer, EventView)

    async def open(self) -> SocketStream:
        """One connection to the service."""
        try:
            return await anyio.connect_unix(socket_path(self.home))
        except OSError:
            raise not_reached(self.home) from None

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
    ) -> Answer:
        data = None if body is None else json.dumps(body).encode("ascii")
        at, trace = target(path, query), own_trace()
        request = encode_request(method, at, data, job=self._job, trace=trace)
        asks = method == "GET"
        return Answer(await self.open(), request, self.home, asks=asks)


def _parameters(query: JobQuery) -> list[tuple[str, str | int | None]]:
    lists: tuple[tuple[str, Sequence[str]], ...] = (
        ("repo", query.repo),
        ("state", query.state),
        ("kind", query.kind),
        ("label", query.label),
        ("origin", query.origin),
        ("work", query.work),
    )
    return [
        *((name, value) for name, values in lists for value in values),
        ("failed", int(query.failed)),
        ("active", int(query.active)),
        ("limit", query.limit),
        ("before", query.before),
    ]
