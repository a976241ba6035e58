"""The client that waits: the same verbs as the async one, every one of them."""

from __future__ import annotations

import inspect
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.client import BlockingClient
from forge_actors.client.aio import Client
from forge_actors.domain.errors import NotFound, Unavailable
from forge_actors.domain.webhooks import HookView
from forge_actors.testing.service import fake_service
from tests.client.test_clients import elsewhere, prepare, use_every_verb

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path


class Awaited:
    """A waiting client whose calls are made in a thread, so that they look async."""

    def __init__(self, client: BlockingClient) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if inspect.iscoroutinefunction(getattr(Client, name)):
            return partial(elsewhere, method)
        return partial(self._stream, method)

    @asynccontextmanager
    async def _stream(
        self, method: Any, *args: Any, **named: Any
    ) -> AsyncGenerator[AsyncIterator[Any], None]:
        with method(*args, **named) as pieces:
            each = self._each(pieces)
            yield each
            await each.aclose()

    async def _each(self, pieces: Any) -> AsyncGenerator[Any, None]:
        over = object()
        while (piece := await elsewhere(next, pieces, over)) is not over:
            yield piece


async def test_every_verb_without_an_event_loop(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control:
        prepare(control)

        def end(job: str) -> None:
            control.write(job, b"output\n")
            control.end(job)

        client: Any = Awaited(BlockingClient(tmp_path))
        await use_every_verb(client, end)


def test_no_verb_is_left_out() -> None:
    verbs = {
        name
        for name, _ in inspect.getmembers(Client, inspect.isfunction)
        if not name.startswith("_") and name != "open"
    }
    client = BlockingClient("/nowhere")
    assert verbs <= set(dir(client))
    for name in verbs:
        wanted = inspect.signature(getattr(Client("/nowhere"), name))
        assert inspect.signature(getattr(client, name)) == wanted
        assert getattr(client, name).__doc__ == getattr(Client, name).__doc__


async def test_webhooks_are_asked_about(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control:
        client = BlockingClient(tmp_path)
        hook = HookView("ci", "https://x", [], [], "gone", 7, 1, None, None)
        control.hooks["ci"] = hook
        assert await elsewhere(client.webhooks) == [hook]
        assert (await elsewhere(client.test_webhook, "ci")).status == 200
        assert (await elsewhere(client.open_webhook, "ci")).state == "open"
        with pytest.raises(NotFound):
            await elsewhere(client.open_webhook, "nowhere")
        with pytest.raises(NotFound):
            await elsewhere(client.test_webhook, "nowhere")


def test_without_a_service_each_call_says_so(tmp_path: Path) -> None:
    client = BlockingClient(tmp_path)
    with pytest.raises(Unavailable, match="forge-actors serve"):
        client.jobs()
    with pytest.raises(Unavailable), client.events() as events:
        next(events)
