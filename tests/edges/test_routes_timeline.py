"""The route of what ran when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.client.aio import Client
from forge_actors.domain.timeline import DEFAULT_SPANS, MAX_SPANS, Run, TimelineQuery
from tests.edges.routes_kit import open_api

if TYPE_CHECKING:
    from pathlib import Path


async def test_it_answers_with_the_timeline_that_is_asked_for(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        run = Run("j1", 1, "app", ("workers",), began=1.5, slots={"workers": 0})
        api.control.timeline_told = structs.replace(
            api.control.timeline_told, runs=[run]
        )
        status, answer = await api("GET", "/timeline")
        assert status == 200
        assert answer["runs"][0]["began"] == 1.5
        assert answer["runs"][0]["ended"] is None
        await api("GET", "/timeline?since=2h&until=1h&repo=app&repo=lib&limit=7")
        assert api.control.timeline_queries == [
            TimelineQuery(limit=DEFAULT_SPANS),
            TimelineQuery("2h", "1h", ("app", "lib"), 7),
        ]


async def test_numbers_that_cannot_be_are_refused(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        for limit in ("0", str(MAX_SPANS + 1), "many"):
            status, message = await api.error("GET", f"/timeline?limit={limit}")
            assert status == 400
            assert "limit" in message


async def test_a_client_gets_it_as_it_is(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        run = Run("j1", 2, "app", ("workers",), suspended=((1.0, None),))
        api.control.timeline_told = structs.replace(
            api.control.timeline_told, runs=[run]
        )
        told = await Client(str(tmp_path)).timeline("1d", repo=["app"], limit=3)
        assert told == api.control.timeline_told
        assert api.control.timeline_queries == [TimelineQuery("1d", None, ("app",), 3)]
