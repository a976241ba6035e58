"""The async client holds, pauses, resumes and edits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.client import connect
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.requests import JobEdit
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_client_steers_a_job(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control, connect(tmp_path) as client:
        job = (await client.submit("app", ["x"])).id
        for move, kind in (
            (client.hold, "pause"),
            (client.unhold, "token"),
            (client.pause_job, "pause"),
            (client.resume_job, "token"),
        ):
            view = await move(job)
            assert view.waiting is not None
            assert view.waiting["kind"] == kind
        view = await client.edit(job, JobEdit(priority="P1", labels=["x"]))
        assert (view.priority, view.labels) == ("P1", ["x"])
        control.end(job)
        with pytest.raises(Refused, match="has ended"):
            await client.hold(job)


async def test_a_client_pauses_and_resumes(tmp_path: Path) -> None:
    async with fake_service(tmp_path), connect(tmp_path) as client:
        [pause] = await client.pause("provider:codex", jobs=True)
        assert (pause.scope, pause.jobs) == ("provider:codex", True)
        assert len(await client.pause("all")) == 2
        assert await client.resume("all") == [pause]
        with pytest.raises(InvalidInput, match="scope"):
            await client.pause("some")


async def test_a_client_frees_kept_claims(tmp_path: Path) -> None:
    async with fake_service(tmp_path) as control, connect(tmp_path) as client:
        job = await client.submit("app", ["x"])
        control.kept[job.id] = {"job": job.id}
        assert await client.quarantined() == [{"job": job.id}]
        assert await client.release_quarantine(job.id) == {"job": job.id}
        with pytest.raises(Refused, match="no claims are kept"):
            await client.release_quarantine(job.id)
