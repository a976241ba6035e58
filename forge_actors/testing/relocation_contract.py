"""What every store keeps when a repository is somewhere else from now on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.changes import Quarantined, RepositoryChanged
from forge_actors.domain.claims import Claim
from forge_actors.domain.events import Event
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.quarantine import Quarantine
from forge_actors.domain.relocation import Relocation
from forge_actors.testing.made_changes import dispatched, ended, job, repository

if TYPE_CHECKING:
    from forge_actors.testing.store_contract import Check, Open


def _claims(place: str) -> tuple[Claim, ...]:
    return (Claim("read", "path", "src", place), Claim("write", "git-ref", "main"))


async def check_jobs_that_have_not_ended_follow_their_repository(open_: Open) -> None:
    old, new, other = _claims("/old/tree"), _claims("/new/tree"), _claims("/oldest")
    added = repository(path="/old", common_dir="/old/.git")
    waits = job("waits", claims=old)
    waits = structs.replace(waits, spec=structs.replace(waits.spec, cwd="/old/sub"))
    left = Quarantine(
        "ended", "repo", 1, 1, old, (ProcessIdentity("boot", 1, 1),), "stuck", 30.0
    )
    moved = structs.replace(added.repository, path="/new", common_dir="/new/.git")
    event = Event("repository_moved", 40.0, "repo")
    async with open_() as store:
        store.save([added, repository("other"), waits, job("ended", claims=old)])
        store.save([job("runs", claims=old), dispatched("runs")])
        store.save([job("beside", claims=other), job("elsewhere", "other", claims=old)])
        store.save([dispatched("ended", fence=2), ended("ended", fence=2)])
        store.save([Quarantined(left, Event("job_quarantined", 30.0, "repo", "ended"))])
        relocation = Relocation("/old", "/new")
        change = RepositoryChanged(moved, event, relocation)
        saved = store.save([change])
        # At once, for whoever loads it or starts a job before that is durable.
        assert store.spec("waits").cwd == "/new/sub"
        assert store.claims("repo")["runs"] == new
        await saved.wait()
        assert store.spec("waits").cwd == "/new/sub"
    async with open_() as store:
        assert store.spec("waits").cwd == "/new/sub"
        expected = {"waits": new, "runs": new, "beside": other, "ended": new}
        assert store.claims("repo") == expected
        found = {held.id: held.claims for held in store.load_jobs("repo")}
        assert found == {"waits": new, "runs": new, "beside": other}
        assert store.load("repo").quarantined["ended"].claims == new
        assert [held.claims for held in store.load_jobs("other")] == [old]


CHECKS: tuple[Check, ...] = (check_jobs_that_have_not_ended_follow_their_repository,)
