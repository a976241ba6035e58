"""Requests that are held have places of their own: short ones always have some left."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.client.wire import ResponseReader, encode_request
from forge_actors.edges.gateway.messages import RETRY_AFTER, Limits
from forge_actors.testing.service import fake_service
from tests.edges.http_kit import connect, read_all, read_until
from tests.edges.routes_kit import Api

if TYPE_CHECKING:
    from pathlib import Path

FOLLOW = encode_request("GET", "/v1/events?follow=1")
END_OF_HEAD = b"\r\n\r\n"


@pytest.mark.parametrize("limits", [Limits(held=3, connections=5), Limits()])
async def test_one_held_request_too_many_is_refused_and_short_ones_are_answered(
    tmp_path: Path, limits: Limits
) -> None:
    async with fake_service(tmp_path, limits=limits) as control:
        path = str(tmp_path / "control.sock")
        api = Api(control, path)
        async with AsyncExitStack() as stack:
            clients = []
            for _ in range(limits.held):
                client = await stack.enter_async_context(await connect(path))
                await client.send_all(FOLLOW)
                assert b" 200 " in await read_until(client, END_OF_HEAD)
                clients.append(client)
            await control.until_held(limits.held)
            async with await connect(path) as late:
                await late.send_all(FOLLOW)
                reader = ResponseReader()
                body = reader.feed(await read_all(late))
            assert reader.status == 503
            assert reader.headers["retry-after"] == str(RETRY_AFTER)
            assert b"BUSY" in body
            assert b"%d requests are held already" % limits.held in body
            for _ in range(20):
                assert (await api("GET", "/status"))[0] == 200
            # A place that is left is another's, and those who stay are told as before.
            await clients.pop().aclose()
            await control.until_held(limits.held - 1)
            async with await connect(path) as late:
                await late.send_all(FOLLOW)
                await read_until(late, END_OF_HEAD)
                await control.until_held(limits.held)
                control.emit("news")
                for client in (late, *clients):
                    await read_until(client, b"}\n\r\n")
        await control.until_held(0)


async def test_a_connection_too_many_is_told_when_to_come_again(tmp_path: Path) -> None:
    limits = Limits(held=1, connections=2)
    async with fake_service(tmp_path, limits=limits):
        path = str(tmp_path / "control.sock")
        async with await connect(path), await connect(path):
            await trio.testing.wait_all_tasks_blocked()
            async with await connect(path) as late:
                data = await read_all(late)
        assert data.startswith(b"HTTP/1.1 503")
        assert b"retry-after: %d\r\n" % RETRY_AFTER in data.lower()
