"""What cannot be proven is shown in `status`, `why` and `doctor`, and frees nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.actors.signs import LEASE_SECONDS
from forge_actors.cli.doctor import _kept_claims
from forge_actors.cli.status import _kept
from forge_actors.domain.changes import Quarantined
from forge_actors.domain.claims import Claim
from forge_actors.domain.errors import Refused
from forge_actors.domain.events import Event, EventQuery
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.quarantine import Quarantine
from forge_actors.edges.machine import own_identity
from tests.runtime.control_kit import Case, controlled
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path

LEFT = (ProcessIdentity("another boot", 4001, 1), ProcessIdentity("b", 4002, 1))


async def keep_claims(case: Case, remaining: tuple[ProcessIdentity, ...] = LEFT) -> str:
    """A job that left its claim on the repository behind."""
    job = await case.submit("app", "true")
    await case.control.wait([job])
    store = case.control._store
    [repo] = case.control._registry.all()
    claims = (Claim("write", "repo-content", "*"),)
    left = Quarantine(
        job, repo.id, 1, 1, claims, remaining, "the node agent ended", 30.0
    )
    event = Event("job_quarantined", 30.0, repo.id, job, {"claims": claims})
    await store.save([Quarantined(left, event)]).wait()
    return job


async def test_kept_claims_are_in_the_status_and_on_the_screens(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        assert (await case.control.status())["quarantined"] == []
        job = await keep_claims(case)
        status: Any = await case.control.status()
        assert status["quarantined"] == [
            {
                "job": job,
                "repo": "app",
                "attempt": 1,
                "claims": ["write:repo-content:*"],
                "pids": [4001, 4002],
                "reason": "the node agent ended",
                "since": "1970-01-01T00:00:30.000Z",
            }
        ]
        assert status["ready"], "everything else goes on"
        heading, line = _kept(status["quarantined"])
        assert heading == "kept claims"
        assert f"{job}  app  write:repo-content:*: process 4001 4002" in line
        [check] = _kept_claims(status["quarantined"])
        assert check.state == "broken"
        assert "process 4001 4002; it is free once that is gone" in check.detail
    # Processes of another boot, or that nobody has seen, are proven gone by looking.
    async with running(tmp_path / "home") as runtime:
        async for event in runtime.events(after=0):
            if (event.kind, event.job) == ("job_quarantine_ended", job):
                break
        assert (await runtime.status())["quarantined"] == []


async def test_a_person_frees_kept_claims_and_that_is_written_down(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        # This very process is alive as long as anybody looks.
        job = await keep_claims(case, (own_identity(),))
    async with running(tmp_path / "home") as runtime:
        case = Case(runtime, tmp_path)
        waits = await case.submit("app", "true", claims=["write:repo-content:*"])
        sentence = (await case.control.why(waits)).sentence
        assert f"forge-actors quarantine release {job}" in sentence
        [kept] = await case.control.quarantined()
        assert kept["job"] == job
        with pytest.raises(Refused, match=f"no claims are kept .* {waits}"):
            await case.control.release_quarantine(waits)
        assert await case.control.release_quarantine(job[-6:]) == kept
        assert await case.control.quarantined() == []
        [view] = await case.control.wait([waits])
        assert view.state == "succeeded"
        with pytest.raises(Refused, match="no claims are kept"):
            await case.control.release_quarantine(job)
        page = await case.control.events(
            EventQuery(after=0, kind=("job_quarantine_ended",)), wait=False
        )
        [ended] = page.events
        assert ended.data["reason"] == "asked"
        assert ended.data["pids"] == [own_identity().pid]


async def test_leases_of_a_silent_agent_are_unconfirmed_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with controlled(tmp_path) as case:
        job = await case.hold()
        assert (await case.control.status())["degraded"] == []
        launcher = case.control._launcher
        asked = trio.Event()
        monkeypatch.setattr(launcher, "ping", asked.set)
        silent = trio.current_time() - LEASE_SECONDS - 5
        monkeypatch.setattr(type(launcher), "heard_at", property(lambda _: silent))
        await asked.wait()  # by the next pass
        status: Any = await case.control.status()
        [degraded] = status["degraded"]
        assert "gave no sign of life for" in degraded
        assert status["capacity"]["workers"]["jobs"] == [job]
        assert (await case.control.why(job)).sentence.endswith(
            "so its leases are unconfirmed."
        )
        monkeypatch.undo()
        assert (await case.control.status())["degraded"] == []
        await case.end(job)
