"""What every store keeps of what was done about the items of the inbox, as checks."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.changes import (
    EffectsRefused,
    HookChanged,
    ItemMarked,
    JobAnswered,
    JobApproved,
)
from forge_actors.domain.effects import Approval, Authority, RefusedEffect, allowed
from forge_actors.domain.events import Event
from forge_actors.domain.inbox import Mark
from forge_actors.domain.jobs import AgentSpec, Answer
from forge_actors.domain.webhooks import HookMark
from forge_actors.testing.made_changes import (
    dispatched,
    job,
    ran,
    repository,
    requeued,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.ports import Store

    Open = Callable[[], AbstractAsyncContextManager[Store]]
    Check = Callable[[Open], Awaitable[None]]


async def check_what_was_done_about_an_item_stays_done(open_: Open) -> None:
    told = Event("inbox_dismissed", 20.0, data={"item": "job:a"})
    async with open_() as store:
        assert store.inbox_marks() == []
        store.save([ItemMarked(Mark("job:a", notified_at=10.0))])
        assert store.inbox_marks() == [Mark("job:a", None, 10.0)]
        seen = Mark("job:a", dismissed_at=20.0)
        await store.save([ItemMarked(seen, told)]).wait()
    async with open_() as store:
        assert store.inbox_marks() == [Mark("job:a", 20.0, 10.0)]
        await store.save([ItemMarked(Mark("job:b", notified_at=30.0))]).wait()
    async with open_() as store:
        marks = {mark.item: mark for mark in store.inbox_marks()}
        assert marks["job:a"] == Mark("job:a", 20.0, 10.0)
        assert marks["job:b"] == Mark("job:b", None, 30.0)


async def check_an_answer_is_part_of_its_job_once_and_queues_it(open_: Open) -> None:
    added = job(kind="agent-run")
    asks = structs.replace(added.spec, agent=AgentSpec("claude", "a" * 64))
    added = structs.replace(added, spec=asks)
    parked = requeued(state="waiting_for_approval")
    told = Event("job_queued", 50.0, "repo", "job", {"reason": "answered"})
    async with open_() as store:
        store.save([repository(), added, dispatched(), ran()])
        await store.save([parked]).wait()
    async with open_() as store:
        assert store.load_jobs("repo")[0].state == "waiting_for_approval"
        assert store.spec("job") == asks
        await store.save([JobAnswered("job", "b" * 64, told)]).wait()
    async with open_() as store:
        assert store.load_jobs("repo")[0].state == "queued"
        agent = store.spec("job").agent
        assert agent is not None
        assert agent.answer == Answer("job", "b" * 64)
        assert agent.prompt == "a" * 64


async def check_an_approval_is_part_of_its_job_and_lets_it_wait_its_turn(
    open_: Open,
) -> None:
    held = Authority(automated=True, began="schedule:x", declared=("push",))
    added = job(state="waiting_for_approval")
    spec = structs.replace(added.spec, authority=held)
    added = structs.replace(added, spec=spec)
    approval = Approval("job", ("push",), "somebody", "command line", 40.0)
    told = Event("job_queued", 40.0, "repo", "job", {"reason": "approved"})
    async with open_() as store:
        await store.save([repository(), added]).wait()
    async with open_() as store:
        assert store.load_jobs("repo")[0].state == "waiting_for_approval"
        assert allowed(store.spec("job").authority, "job") == ()
        await store.save([JobApproved("job", approval, told, "queued")]).wait()
    async with open_() as store:
        assert store.load_jobs("repo")[0].state == "queued"
        authority = store.spec("job").authority
        assert authority == structs.replace(held, approvals=(approval,))
        refused = (RefusedEffect("merge", "gh pr merge"),)
        kept = Event("effect_refused", 50.0, "repo", "job")
        store.save([dispatched(), ran(), EffectsRefused("job", refused, kept)])
        await store.save([requeued(state="queued")]).wait()
    async with open_() as store:
        # What it was kept from is told; it changes nothing of the job.
        assert store.load_jobs("repo")[0].state == "queued"
        assert store.spec("job").authority == authority


async def check_how_far_a_webhook_is_is_kept(open_: Open) -> None:
    began = HookMark("ci", 5, "abc")
    closed = HookMark("ci", 7, "abc", 20.0, "it answered 410", "gone")
    told = Event("webhook_closed", 20.0, data={"webhook": "ci"})
    async with open_() as store:
        assert store.webhooks() == []
        store.save([HookChanged(began)])
        assert store.webhooks() == [began]
        await store.save([HookChanged(HookMark("a", 0))]).wait()
    async with open_() as store:
        assert store.webhooks() == [HookMark("a", 0), began]
        await store.save([HookChanged(closed, told)]).wait()
    async with open_() as store:
        assert store.webhooks() == [HookMark("a", 0), closed]


CHECKS: tuple[Check, ...] = (
    check_what_was_done_about_an_item_stays_done,
    check_an_answer_is_part_of_its_job_once_and_queues_it,
    check_an_approval_is_part_of_its_job_and_lets_it_wait_its_turn,
    check_how_far_a_webhook_is_is_kept,
)
