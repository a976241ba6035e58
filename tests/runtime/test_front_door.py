"""A service over TCP: what it takes to be answered there, and what is refused."""

from __future__ import annotations

import json
import socket
import stat
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import trio
import trio.testing

from forge_actors.client.wire import ResponseReader
from forge_actors.domain.errors import InvalidInput, Refused, Unavailable
from forge_actors.domain.requests import JobRequest
from forge_actors.edges.gateway.front import Front
from forge_actors.edges.gateway.handling import handler, holds
from forge_actors.edges.gateway.messages import Limits, Stream
from forge_actors.edges.gateway.state import ready
from forge_actors.runtime.front_door import FrontDoor
from forge_actors.runtime.homes import TOKEN_FILE
from forge_actors.testing.control import FakeControl

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from forge_actors.edges.gateway.messages import Request, Send

#: A body that asks for something.
FAILED = b'{"failed": true}'
LIMITS = Limits(body_bytes=1000, batch_bytes=4000)


class Answer(NamedTuple):
    status: int | None
    headers: dict[str, str]
    body: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.body)


class Tcp(NamedTuple):
    """The door under test, and a client of it."""

    door: FrontDoor
    home: Path
    told: list[str | None]
    control: FakeControl
    front: Front

    @property
    def port(self) -> int:
        return int((self.door.endpoint or "").rpartition(":")[2])

    @property
    def token(self) -> str:
        return (self.home / TOKEN_FILE).read_text().strip()

    async def __call__(
        self, method: str, target: str, body: bytes = b"", **headers: str
    ) -> Answer:
        named = {"host": f"127.0.0.1:{self.port}", "connection": "close", **headers}
        if body:
            named.setdefault("content-length", str(len(body)))
        lines = [f"{name.replace('_', '-')}: {text}" for name, text in named.items()]
        head = "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""])
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        async with stream:
            await stream.send_all(head.encode() + body)
            reader, answer = ResponseReader(), b""
            while not reader.complete and (data := await stream.receive_some()):
                answer += reader.feed(data)
            assert reader.complete, "it broke off"
        return Answer(reader.status, reader.headers, answer)

    async def trusted(self, method: str, target: str, body: bytes = b"") -> Answer:
        return await self(method, target, body, authorization=f"Bearer {self.token}")


@asynccontextmanager
async def opened(home: Path, port: int | None = 0) -> AsyncGenerator[Tcp, None]:
    control, front = FakeControl(), Front()
    told: list[str | None] = []
    door = FrontDoor(
        home, front, port=port, limits=LIMITS, rate=1000.0, tell=told.append
    )
    front.add("v1", handler(control, door), holds)
    front.add("ready", partial(ready, control))
    async with trio.open_nursery() as nursery:
        await nursery.start(door.serve)
        yield Tcp(door, home, told, control, front)
        door.stop()


async def test_the_token_of_the_home_is_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as tcp:
        answer = await tcp("GET", "/v1/jobs")
        assert (answer.status, answer.value["code"]) == (401, "UNAUTHORIZED")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.value["request_id"] == answer.headers["x-request-id"]
        wrong = await tcp("GET", "/v1/jobs", authorization="Bearer no")
        assert wrong.status == 401
        assert (await tcp.trusted("GET", "/v1/jobs")).status == 200
        assert (await tcp("GET", "/ready")).value == {"ready": True}


async def test_the_token_is_a_file_of_its_owner_and_stays(tmp_path: Path) -> None:
    async with opened(tmp_path) as tcp:
        first = tcp.token
    found = (tmp_path / TOKEN_FILE).stat()
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert len(first) >= 43
    async with opened(tmp_path) as tcp:
        assert tcp.token == first


@pytest.mark.parametrize(
    ("mode", "content", "problem"),
    [
        (0o640, "t" * 43, "could be read by others"),
        (0o600, "short", "holds no token"),
        (0o600, "t" * 40 + "\r\nx: y", "holds no token"),
    ],
)
async def test_a_token_that_is_no_secret_is_not_used(
    tmp_path: Path, mode: int, content: str, problem: str
) -> None:
    (tmp_path / TOKEN_FILE).write_text(content)
    (tmp_path / TOKEN_FILE).chmod(mode)
    with pytest.raises(ExceptionGroup) as caught:
        async with opened(tmp_path):
            pass
    assert caught.group_contains(InvalidInput, match=problem)


async def test_only_loopback_is_listened_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as tcp:
        assert tcp.told == [f"http://127.0.0.1:{tcp.port}"]
        found = set()
        for table in ("tcp", "tcp6"):
            for line in (tmp_path / "/proc/net" / table).read_text().splitlines()[1:]:
                _, local, _, state, *_ = line.split()
                address, port = local.split(":")
                if state == "0A" and int(port, 16) == tcp.port:
                    found.add(address)
        assert found <= {"0100007F", "0" * 24 + "01000000"}
        assert "0100007F" in found
    assert tcp.told[-1] is None


async def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ExceptionGroup) as caught:
            async with opened(tmp_path, port):
                pass
    assert caught.group_contains(Refused, match=f"port {port} of 127.0.0.1")


@pytest.mark.parametrize(
    "host",
    [
        "evil.test",
        "localhost.evil.test:{port}",
        "localhost",
        "127.0.0.1",
        "127.0.0.1:1",
        "0.0.0.0:{port}",
        "127.1:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "localhost.:{port}",
        "user@localhost:{port}",
    ],
)
async def test_a_foreign_host_is_refused(tmp_path: Path, host: str) -> None:
    async with opened(tmp_path) as tcp:
        bearer = f"Bearer {tcp.token}"
        named = host.format(port=tcp.port)
        answer = await tcp("GET", "/v1/jobs", host=named, authorization=bearer)
        assert answer.status == 403


async def test_the_names_of_this_machine_are_no_foreign_hosts(tmp_path: Path) -> None:
    async with opened(tmp_path) as tcp:
        bearer = f"Bearer {tcp.token}"
        for name in ("127.0.0.1", "localhost"):
            host = f"{name}:{tcp.port}"
            answer = await tcp("GET", "/v1/jobs", host=host, authorization=bearer)
            assert answer.status == 200


@pytest.mark.parametrize(
    "origin",
    ["https://evil.test", "null", "http://localhost", "https://127.0.0.1:{port}", ""],
)
async def test_a_foreign_origin_is_refused(tmp_path: Path, origin: str) -> None:
    async with opened(tmp_path) as tcp:
        headers = {"authorization": f"Bearer {tcp.token}"}
        headers["origin"] = origin.format(port=tcp.port)
        answer = await tcp("POST", "/v1/select", FAILED, **headers)
        assert answer.status == 403
        headers["origin"] = f"http://127.0.0.1:{tcp.port}"
        assert (await tcp("POST", "/v1/select", FAILED, **headers)).status == 200


async def test_a_browser_is_let_in_by_a_link(tmp_path: Path) -> None:
    async with opened(tmp_path) as tcp:
        made = await tcp.trusted("POST", "/v1/login-links", b'{"place": "/v1/jobs"}')
        assert made.status == 201
        assert made.value["url"].startswith(f"http://127.0.0.1:{tcp.port}/login?")
        target = "/" + made.value["url"].split("/", 3)[3]
        entered = await tcp("GET", target)
        assert (entered.status, entered.headers["location"]) == (303, "/v1/jobs")
        cookie = entered.headers["set-cookie"].partition(";")[0]
        assert (await tcp("GET", "/v1/jobs", cookie=cookie)).status == 200
        assert (await tcp("GET", target)).status == 401

        blind = await tcp("POST", "/v1/select", FAILED, cookie=cookie)
        assert (blind.status, blind.value["code"]) == (403, "FORBIDDEN")
        origin = f"http://127.0.0.1:{tcp.port}"
        ours = {"cookie": cookie, "origin": origin}
        assert (await tcp("POST", "/v1/select", FAILED, **ours)).status == 200
        more = await tcp("POST", "/v1/login-links", b"{}", **ours)
        assert (more.status, more.value["code"]) == (403, "FORBIDDEN")

        assert (await tcp("POST", "/v1/logout", b"{}", **ours)).value == {"ended": True}
        assert (await tcp("GET", "/v1/jobs", cookie=cookie)).status == 401
        other = await tcp.trusted("POST", "/v1/logout", b"{}")
        assert other.value == {"ended": False}


async def test_who_logs_out_is_told_nothing_more(tmp_path: Path) -> None:
    ended: list[str] = []

    async def events(request: Request) -> Stream:
        async def produce(send: Send) -> None:
            await send(b"first")
            try:
                await trio.sleep_forever()
            finally:
                ended.append(request.query)

        return Stream(produce, lasting=True)

    async with opened(tmp_path) as tcp, trio.open_nursery() as nursery:
        tcp.front.add("events", events)
        cookies = []
        for _ in range(2):
            link = await tcp.door.login_link()
            entered = await tcp("GET", "/" + link.url.split("/", 3)[3])
            cookies.append(entered.headers["set-cookie"].partition(";")[0])
        [job] = await tcp.control.submit([JobRequest("app", ["x"])])
        wait = f"/v1/jobs/{job.id}/wait"
        answers: dict[str, Answer] = {}

        async def ask(target: str, cookie: str) -> None:
            answers[target] = await tcp("GET", target, cookie=cookie)

        for number, cookie in enumerate(cookies):
            nursery.start_soon(ask, f"/events?{number}", cookie)
        nursery.start_soon(ask, wait, cookies[0])
        await tcp.control.until_held(1)
        await trio.testing.wait_all_tasks_blocked()
        ours = {"cookie": cookies[0], "origin": f"http://127.0.0.1:{tcp.port}"}
        assert (await tcp("POST", "/v1/logout", b"{}", **ours)).value == {"ended": True}
        await tcp.control.until_held(0)
        await trio.testing.wait_all_tasks_blocked()
        assert ended == ["0"]
        # In order: what was begun is whole, and what was waited for is refused.
        assert answers["/events?0"].body == b"first"
        assert (answers[wait].status, answers[wait].value["code"]) == (
            401,
            "UNAUTHORIZED",
        )
        assert "/events?1" not in answers
        nursery.cancel_scope.cancel()


async def test_a_link_opens_what_was_closed(tmp_path: Path) -> None:
    async with opened(tmp_path, None) as tcp:
        assert (tcp.told, tcp.door.endpoint) == ([], None)
        assert not (tmp_path / TOKEN_FILE).exists()
        first, second = await tcp.door.login_link(), await tcp.door.login_link("/x")
        assert first.endpoint == second.endpoint == tcp.door.endpoint
        assert tcp.told == [tcp.door.endpoint]
        target = "/" + second.url.split("/", 3)[3]
        assert (await tcp("GET", target)).headers["location"] == "/x"
    with pytest.raises(Unavailable):
        await tcp.door.login_link()


async def test_a_link_that_is_asked_for_early_is_one_to_the_port_of_the_settings(
    tmp_path: Path,
) -> None:
    door = FrontDoor(tmp_path, Front(), port=0, limits=LIMITS, rate=1.0)
    links: list[str] = []

    async def ask() -> None:
        links.append((await door.login_link()).endpoint)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert links == []
        await nursery.start(door.serve)
        await trio.testing.wait_all_tasks_blocked()
        assert links == [door.endpoint]
        door.stop()


@pytest.mark.parametrize("moments", range(8))
async def test_it_ends_while_a_link_is_being_made(tmp_path: Path, moments: int) -> None:
    told: list[str | None] = []
    door = FrontDoor(
        tmp_path, Front(), port=None, limits=LIMITS, rate=1000.0, tell=told.append
    )

    async def ask() -> None:
        with suppress(Unavailable):
            await door.login_link()

    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            await nursery.start(door.serve)
            nursery.start_soon(ask)
            for _ in range(moments):
                await trio.lowlevel.checkpoint()
            door.stop()
    assert told[-1] is None


async def test_a_refusal_repeats_what_the_request_is_called(tmp_path: Path) -> None:
    async with opened(tmp_path) as tcp:
        for method in ("GET", "PUT"):
            answer = await tcp(method, "/v1/jobs", x_request_id="mine-1")
            assert answer.status == 401
            assert answer.headers["x-request-id"] == "mine-1"
            assert answer.value["request_id"] == "mine-1"


async def test_a_stranger_sends_no_body(tmp_path: Path) -> None:
    async with opened(tmp_path) as tcp:
        # It is answered without a byte of it.
        answer = await tcp("POST", "/v1/jobs", content_length="900")
        assert answer.status == 401


async def test_a_body_is_small_except_that_of_a_batch(tmp_path: Path) -> None:
    async with opened(tmp_path) as tcp:
        large = b"\n" * 1001
        answer = await tcp.trusted("POST", "/v1/jobs", large)
        assert (answer.status, answer.value["code"]) == (413, "TOO_LARGE")
        answer = await tcp.trusted("POST", "/v1/batch", large)
        assert answer.value["field"] == "batch"
        assert (await tcp.trusted("POST", "/v1/batch", large * 4)).status == 413


@pytest.mark.parametrize(
    "target",
    [
        "/v1/../v1/jobs",
        "/v1/./jobs",
        "/v1/%2e%2e/v1/jobs",
        "/v1/jobs/%00",
        "/..",
        "/v1/jobs/%2E",
    ],
)
async def test_a_path_that_is_none_is_refused(tmp_path: Path, target: str) -> None:
    async with opened(tmp_path) as tcp:
        assert (await tcp.trusted("GET", target)).status == 400
