"""What needs a person, on a real runtime and where nothing serves its home."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import to_builtins

from forge_actors.client import offline_home, offline_inbox
from forge_actors.domain.accounts import Account
from forge_actors.domain.changes import AccountChanged, Quarantined, SetAside
from forge_actors.domain.claims import Claim
from forge_actors.domain.errors import NotFound
from forge_actors.domain.events import Event
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.poison import Poison
from forge_actors.domain.quarantine import Quarantine
from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
)
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path

KILLED = ["sh", "-c", "echo begun; kill -9 $$"]


async def test_a_job_with_an_unknown_outcome_is_there_until_somebody_saw_to_it(
    repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        control = runtime.control
        assert (await control.inbox()).items == []
        first, second = [await runtime.submit(repo, KILLED) for _ in range(2)]
        await first.wait()
        assert (await second.wait()).state == "human_attention_required"
        items = (await control.inbox()).items
        assert [item.job for item in items] == [second.id, first.id]
        assert items[0].evidence["code"] == "INTERRUPTED"
        assert list((home / "logs").glob(f"{second.id}.1*"))
        assert items[0].evidence["log"] == str(home / f"logs/{second.id}.1")
        assert await _counted(control) == 2

        assert (await control.dismiss(f"job:{first.id}")).job == first.id
        with pytest.raises(NotFound):
            await control.dismiss(first.id)
        assert [item.job for item in (await control.inbox()).items] == [second.id]
    served = offline_inbox.items(str(home))
    assert [item["job"] for item in served["items"]] == [second.id]
    async with running(home) as runtime:
        control = runtime.control
        found = await control.inbox()
        assert to_builtins(found) == served
        assert (found.count, found.dismissed) == (1, 1)
        again = await control.retry([second.id])
        await control.wait([again[0].id])
        assert [item.job for item in (await control.inbox()).items] == [again[0].id]


async def test_a_provider_that_knows_no_login_is_there_until_it_is_open_again(
    home: Path,
) -> None:
    event = Event("provider_closed", 5.0, data={"provider": "claude", "reason": "auth"})
    closed = Account("claude", False, 5.0, "auth", job="job", detail="401")
    async with running(home) as runtime:
        control = runtime.control
        await control._store.save([AccountChanged(closed, event)]).wait()
        [item] = (await control.inbox()).items
        assert (item.kind, item.job) == ("provider", "job")
        assert "is not logged in" in item.says
        served = to_builtins(await control.inbox())
    assert offline_inbox.items(str(home)) == served
    assert offline_home.status(str(home))["inbox"] == {"items": 1}
    async with running(home) as runtime:
        await runtime.control.resume("provider:claude")
        assert (await runtime.control.inbox()).items == []


async def test_kept_claims_and_what_was_set_aside_are_there(
    repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        job = await runtime.submit(repo, ["true"])
        await job.wait()
        place = (await runtime.control.repositories())[0].id
        claim = Claim("write", "path", "src")
        process = ProcessIdentity("boot", 4001, 7)
        left = Quarantine(job.id, place, 1, 1, (claim,), (process,), "it was lost", 3.0)
        poison = Poison(place, "ValueError: no", 4.0, "gone")
        told = [
            Quarantined(left, Event("job_quarantined", 3.0, place, job.id)),
            SetAside(poison, Event("job_set_aside", 4.0, place, "gone")),
        ]
        await runtime.control._store.save(told).wait()
        aside, kept = (await runtime.control.inbox()).items
        assert (aside.kind, aside.evidence) == ("aside", {"error": "ValueError: no"})
        assert (kept.kind, kept.evidence["processes"]) == ("claims", "4001")
        served = to_builtins(await runtime.control.inbox())
    assert offline_inbox.items(str(home)) == served


async def _counted(control: Any) -> int:
    count: int = (await control.status())["inbox"]["items"]
    return count
