"""What the tests of routes share."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import trio
import trio.testing

from forge_actors.client.wire import ResponseReader, encode_request
from forge_actors.edges.gateway.handling import find_route
from forge_actors.edges.gateway.messages import JSON_LINES
from forge_actors.edges.gateway.openapi import Problem
from forge_actors.edges.gateway.plain import make_request
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from forge_actors.testing.control import FakeControl


class Api:
    """Asks one thing a connection; answers are (status, decoded body)."""

    def __init__(self, control: FakeControl, path: str) -> None:
        self.control = control
        self.path = path

    async def raw(
        self, method: str, target: str, body: bytes | None = None
    ) -> tuple[int | None, bytes]:
        async with await trio.open_unix_socket(self.path) as stream:
            await stream.send_all(encode_request(method, f"/v1{target}", body))
            reader = ResponseReader()
            answer = b""
            while not reader.complete:
                data = await stream.receive_some()
                if not data:
                    break
                answer += reader.feed(data)
            self._check(method, target, reader.status or 0, answer)
            return reader.status, answer

    def _check(self, method: str, target: str, status: int, answer: bytes) -> None:
        """Whether an answer is what the route says that it gives."""
        path = make_request(method, f"/v1{target}", {})
        route = None if path is None else find_route(method, path.path)
        if route is None or status >= 300:
            msgspec.json.decode(answer, type=Problem)
            return
        assert status == route.status
        if route.media == JSON_LINES:
            for line in answer.splitlines():
                msgspec.json.decode(line, type=route.gives)
        elif route.gives is not None:
            msgspec.json.decode(answer, type=route.gives)

    async def __call__(
        self, method: str, target: str, body: object = None
    ) -> tuple[int | None, Any]:
        data = None if body is None else json.dumps(body).encode()
        status, answer = await self.raw(method, target, data)
        return status, json.loads(answer)

    async def error(self, method: str, target: str, body: object = None) -> Any:
        status, answer = await self(method, target, body)
        return (status, answer["detail"])

    async def submit(self, **fields: object) -> str:
        job = {"repo": "app", "argv": ["make"], **fields}
        status, answer = await self("POST", "/jobs", {"jobs": [job]})
        assert status == 201
        found: str = answer["jobs"][0]["id"]
        return found


@asynccontextmanager
async def open_api(home: Path) -> AsyncGenerator[Api, None]:
    async with fake_service(home) as control:
        yield Api(control, str(home / "control.sock"))
