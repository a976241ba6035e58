"""The client and the runs of EPICs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.client import connect
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_run_is_begun_listed_stopped_and_waited_for(tmp_path: Path) -> None:
    url = "https://github.com/octo/demo/issues/7"
    async with fake_service(tmp_path) as control, connect(tmp_path) as client:
        run = await client.run_epic(url, "demo", max_parallel=2, request_id="once")
        [wanted] = control.epic_requests
        assert (wanted.epic, wanted.max_parallel, wanted.request_id) == (url, 2, "once")
        ended = await client.run_epic(url, tmp_path)
        over = structs.replace(ended, state="ended", reason="drained")
        control.kept_epics[ended.id] = over
        assert [one.id for one in await client.epics()] == [ended.id, run.id]
        assert await client.epics(active=True) == [run]
        assert await client.epics(before=ended.id, limit=1) == [run]
        assert await client.epic(run.id) == await client.stop_epic(run.id, "now") == run
        assert control.epic_stops == [(run.id, "now")]
        assert await client.wait_epic(ended.id, timeout=5) == over
