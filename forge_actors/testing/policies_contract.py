"""What every store keeps of the policy, as checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from msgspec import structs

from forge_actors.domain.changes import Noted
from forge_actors.domain.events import Event
from forge_actors.domain.policies import Policy
from forge_actors.domain.policy_changes import policy_set
from forge_actors.testing.made_changes import job, repository

if TYPE_CHECKING:
    from forge_actors.testing.store_contract import Open

#: As the others, but for the one that never was another.
EXCLUSIVE = Policy("exclusive", "wf-1", "release", 9.0, 99.5, 1)


class _Keeper(Protocol):
    @property
    def policy(self) -> Policy | None: ...

    def read_policy(self) -> Policy: ...


async def check_the_policy_is_what_was_set_last(open_: Open) -> None:
    async with open_() as store:
        keeper = cast("_Keeper", store)
        assert (keeper.policy, keeper.read_policy()) == (None, Policy())
        saved = store.save([policy_set(EXCLUSIVE, Policy(), 9.0, "release")])
        # Who accepts jobs goes by it from then on.
        assert keeper.policy == EXCLUSIVE
        await saved.wait()
    async with open_() as store:
        keeper = cast("_Keeper", store)
        assert (keeper.policy, keeper.read_policy()) == (EXCLUSIVE, EXCLUSIVE)
        normal = Policy("normal", since=20.0, revision=2)
        await store.save([policy_set(normal, EXCLUSIVE, 20.0, "")]).wait()
        assert (keeper.policy, keeper.read_policy()) == (None, normal)
        await store.save([Noted(Event("runtime_ready", 21.0))]).wait()
    async with open_() as store:
        assert cast("_Keeper", store).read_policy() == normal


async def check_the_work_of_a_job_comes_back(open_: Open) -> None:
    added, other = job("of-it"), job("other")
    of_it = structs.replace(
        added,
        job=structs.replace(added.job, work="wf-1"),
        spec=structs.replace(added.spec, work="wf-1"),
    )
    async with open_() as store:
        await store.save([repository(), of_it, other]).wait()
    async with open_() as store:
        works = {job.id: job.work for job in store.load_jobs("repo")}
        assert works == {"of-it": "wf-1", "other": None}
        assert store.spec("of-it").work == "wf-1"


CHECKS = (
    check_the_policy_is_what_was_set_last,
    check_the_work_of_a_job_comes_back,
)
