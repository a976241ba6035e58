"""The waiting client and the async one, against the real HTTP interface."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

import forge_actors.client
from forge_actors.client.errors import ServiceError, from_answer
from forge_actors.client.sync import Service, target
from forge_actors.domain.errors import (
    InvalidInput,
    NotFound,
    Refused,
    StoreFailed,
    Unavailable,
)
from forge_actors.domain.requests import JobQuery, JobRequest
from forge_actors.domain.selection import Selection
from forge_actors.domain.settings import SettingChange, SettingView
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import TypeVar

    from forge_actors.client.aio import Client
    from forge_actors.testing.control import FakeControl

    T = TypeVar("T")


async def elsewhere(function: Callable[..., T], *args: object, **named: object) -> T:
    return await trio.to_thread.run_sync(
        partial(function, *args, **named), abandon_on_cancel=True
    )


# The waiting client


async def test_a_waiting_client_asks_and_is_answered(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control:
        service = Service(str(tmp_path))
        body = {"jobs": [{"repo": "app", "argv": ["x"]}]}
        answer = await elsewhere(service.post, "jobs", body=body)
        job = answer["jobs"][0]["id"]
        shown = await elsewhere(service.get, "jobs", query=[("repo", "app")])
        assert [view["id"] for view in shown["jobs"]] == [job]
        control.write(job, b"a" * 1_000_000)
        control.end(job)
        pieces = await elsewhere(
            lambda: list(service.stream("GET", ("jobs", job, "logs", "stdout")))
        )
        assert b"".join(pieces) == b"a" * 1_000_000


@pytest.mark.parametrize(
    ("selector", "error"), [("nowhere", NotFound), ("%2F? #/\udcff", NotFound)]
)
async def test_errors_come_back_as_what_they_were(
    tmp_path: Path, selector: str, error: type[Exception]
) -> None:
    async with fake_service(tmp_path):
        with pytest.raises(error):
            await elsewhere(Service(str(tmp_path)).get, "jobs", selector)


async def test_an_invalid_input_keeps_its_field(tmp_path: Path) -> None:
    async with fake_service(tmp_path):
        query = [("state", "quued")]
        with pytest.raises(InvalidInput) as caught:
            await elsewhere(Service(str(tmp_path)).get, "jobs", query=query)
    assert caught.value.field == "state"
    assert "queued" in caught.value.allowed
    assert str(caught.value).startswith("state: 'quued' is unknown")


def test_no_service_is_unavailable(tmp_path: Path) -> None:
    advice = f"start one with: forge-actors serve --home {tmp_path}"
    with pytest.raises(Unavailable, match=advice) as caught:
        Service(str(tmp_path)).get("status")
    assert caught.value.exit_code == 4
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(tmp_path / "control.sock"))
    stale.close()
    with pytest.raises(Unavailable):
        Service(str(tmp_path)).get("status")


@pytest.mark.parametrize(
    ("status", "body", "kind", "exit_code"),
    [
        (409, b'{"code":"REFUSED","detail":"m"}', Refused, 3),
        (409, b'{"code":"NEW_WORD","detail":"m"}', Refused, 3),
        (503, b'{"code":"STORE_FAILED","detail":"m"}', StoreFailed, 1),
        (429, b'{"code":"TOO_MANY_REQUESTS","detail":"m"}', Unavailable, 4),
        (412, b'{"code":"PRECONDITION_FAILED","detail":"m"}', Refused, 3),
        (503, b'{"code":"BUSY","detail":"m"}', Unavailable, 4),
        (500, b'{"code":"INTERNAL","detail":"m"}', ServiceError, 1),
        (502, b"<html>", ServiceError, 1),
    ],
)
def test_each_error_has_its_exit_code(
    status: int, body: bytes, kind: type[Exception], exit_code: int
) -> None:
    error = from_answer(status, body)
    assert type(error) is kind
    assert error.exit_code == exit_code
    # One error changes nothing for the next of its kind.
    assert type(error)("m").code != "NEW_WORD"


def test_a_target_escapes_what_is_odd() -> None:
    query = [("a", "x&y=z"), ("b", None), ("c", 1)]
    assert target(("jobs", "a/b ä"), query) == (
        "/v1/jobs/a%2Fb%20%C3%A4?a=x%26y%3Dz&c=1"
    )


# The async client


async def use_every_verb(client: Client, end: Callable[[str], object]) -> None:
    repository = await client.add_repository("/src/app")
    assert await client.repositories() == [repository]
    details = await client.repository("app")
    assert (details.id, details.common_dir) == (repository.id, "/src/app/.git")
    job = await client.submit("app", ["make", "\udcff"], kind="check", timeout=5)
    more = await client.submit_all(
        [JobRequest(repo="app", argv=["x"], name=name) for name in "ab"]
    )
    views = await client.jobs(JobQuery(repo=["app"], limit=2))
    assert [view.id for view in views] == [more[1].id, more[0].id]
    assert await client.select(Selection(kind=["check"])) == [job.id]
    assert (await client.job(job.id)).argv == ["make", {"b64": "/w=="}]
    assert (await client.why(job.id)).sentence
    assert not (await client.check_fence(job.id, 1, 1)).current
    with pytest.raises(TimeoutError):
        await client.wait(job.id, timeout=0)
    end(job.id)
    [ended] = await client.wait(job.id)
    assert ended.state == "succeeded"
    [made] = await client.retry(job.id)
    assert (await client.job(made.id)).retry_of == job.id
    async with client.logs(job.id, follow=True) as pieces:
        assert b"".join([piece async for piece in pieces]) == b"output\n"
    async with client.events() as events:
        assert [event.kind async for event in events] == ["one", "two"]
    async with client.events(0, kind=["two"], follow=True) as events:
        assert (await anext(events)).kind == "two"
    await client.drain()
    assert (await client.status(wait="ready", timeout=5))["draining"] is True
    await client.undrain()
    with pytest.raises(TimeoutError, match="is not idle within 0 s"):
        await client.status(wait="idle", timeout=0)
    assert (await client.cancel(more[0].id, grace=1)).state == "cancelled"
    with pytest.raises(Refused):
        await client.cancel(more[0].id)
    with pytest.raises(NotFound):
        await client.job("nowhere")
    with pytest.raises(InvalidInput, match="is unknown"):
        await client.submit("app", ["x"], kind="chekc")
    await client.remove_repository("app", cancel=True)
    assert (await client.status())["ready"] is True
    [setting] = await client.settings()
    assert (setting.name, setting.value) == ("limits.workers", 4)
    [change] = await client.reload_settings()
    assert (change.old, change.new) == (4, 5)
    assert await client.reload_settings() == []
    assert await client.stop(jobs=True) == 0


def prepare(control: FakeControl) -> None:
    control.emit("one")
    control.emit("two")
    control.setting_views = [SettingView("limits.workers", 4, "default")]
    control.setting_changes = [SettingChange("limits.workers", 4, 5)]


async def test_every_verb_under_trio(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control:
        prepare(control)

        def end(job: str) -> None:
            control.write(job, b"output\n")
            control.end(job)

        async with forge_actors.client.connect(tmp_path) as client:
            await use_every_verb(client, end)
        assert control.stop_requested.is_set()
        assert control.ends_jobs is True


async def test_every_verb_under_asyncio(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control:
        prepare(control)
        token = trio.lowlevel.current_trio_token()

        def end(job: str) -> None:
            def now() -> None:
                control.write(job, b"output\n")
                control.end(job)

            token.run_sync_soon(now)

        async def main() -> None:
            async with forge_actors.client.connect(tmp_path) as client:
                await use_every_verb(client, end)

        await elsewhere(asyncio.run, main())


async def test_connecting_to_nothing_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        async with forge_actors.client.connect(tmp_path):
            raise AssertionError("not reached")


async def test_a_cancelled_wait_is_dropped_by_the_service(tmp_path: Path) -> None:
    async with (
        fake_service(tmp_path) as control,
        forge_actors.client.connect(tmp_path) as client,
    ):
        job = await client.submit("app", ["x"])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.wait, job.id)
            await trio.testing.wait_all_tasks_blocked()
            assert control.held == 1
            nursery.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert control.held == 0
