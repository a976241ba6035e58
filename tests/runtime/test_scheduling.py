"""The schedules of a runtime: asked while they start, and what they are made of."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors import schedules
from forge_actors.actors.mailbox import open_mailbox, serving
from forge_actors.actors.projections_messages import Board
from forge_actors.actors.schedules_messages import HeldNoMore, Tell
from forge_actors.domain.errors import InvalidInput, Unavailable
from forge_actors.domain.requests import JobRequest, convert
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.domain.schedules import Definition
from forge_actors.domain.triggers import Manual
from forge_actors.runtime.github import GitHubAccess
from forge_actors.runtime.issue_watching import IssueWatching
from forge_actors.runtime.schedule_requests import (
    definition_of,
    moment_of,
    request_from,
)
from forge_actors.runtime.scheduling import Scheduling


def _scheduling() -> Scheduling:
    nothing: Any = None
    looking: Any = SimpleNamespace(board=Board(), looked=[])
    registry: Any = SimpleNamespace(get=None)
    issues = IssueWatching(nothing, GitHubAccess(nothing, Path("nowhere")))
    store: Any = SimpleNamespace(when_policy_changes=lambda _: None)
    return Scheduling(
        *(store, nothing, nothing, nothing, registry, looking, issues),
        wake=nothing,
        timer=nothing,
    )


async def test_who_asks_during_a_start_that_fails_is_answered_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts = 0

    async def run(_: object, *, task_status: trio.TaskStatus[Any]) -> None:
        nonlocal starts
        starts += 1
        await trio.sleep(0.01)
        if starts == 1:
            raise ValueError("it cannot be loaded")
        mailbox, inbox = open_mailbox()
        with serving(inbox):
            task_status.started(mailbox)
            while True:
                (await inbox.receive()).reply.answer([])

    monkeypatch.setattr(schedules, "run", run)
    scheduling = _scheduling()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scheduling.run)
        with trio.fail_after(30):
            assert await scheduling.ask(Tell) == []
        nursery.cancel_scope.cancel()
    assert starts == 2


async def test_what_is_seen_while_they_start_is_told_when_they_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[object] = []

    async def run(_: object, *, task_status: trio.TaskStatus[Any]) -> None:
        mailbox, inbox = open_mailbox()
        # A source sees something of a schedule that is loaded already.
        scheduling.tell(HeldNoMore())
        with serving(inbox):
            task_status.started(mailbox)
            while True:
                heard.append(await inbox.receive())

    monkeypatch.setattr(schedules, "run", run)
    scheduling = _scheduling()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scheduling.run)
        await trio.testing.wait_all_tasks_blocked()
        assert heard == [HeldNoMore()]
        nursery.cancel_scope.cancel()


async def test_who_asks_at_the_end_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_: object, *, task_status: object) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(schedules, "run", run)
    scheduling = _scheduling()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(scheduling.run)
        await trio.sleep(0.01)
        scheduling.stop()
        with trio.fail_after(30), pytest.raises(Unavailable, match="the service ends"):
            await scheduling.ask(Tell)


@pytest.mark.parametrize("text", ["9999-12-31T23:59", "0001-01-01", "1969-01-01"])
def test_a_moment_that_cannot_be_told_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="at: "):
        moment_of(text, "America/New_York", field="at")


def test_a_checkout_of_its_own_stays_the_one_that_was_meant() -> None:
    request = JobRequest(repo="app", argv=["true"])
    definition = Definition("s", "repo", Manual(), request)
    assert request_from(definition, "app")["repo"] == "app"
    linked = structs.replace(request, repo="/srv/app-next")
    definition = structs.replace(definition, request=linked)
    assert request_from(definition, "app")["repo"] == "/srv/app-next"


@pytest.mark.parametrize(
    ("given", "cooldown"),
    [
        ({"on": "branch:main"}, 60.0),
        ({"on": "clean", "job": {"argv": ["x"], "kind": "check"}}, 0.0),
        ({"on": "clean", "job": {"argv": ["x"], "read_only": True}}, 0.0),
        ({"on": "file:src/**", "cooldown": 0}, 0.0),
        ({"on": "file:src/**", "cooldown": "5s"}, 5.0),
        ({"on": "succeeded:build"}, 0.0),
        ({"every": "1h"}, 0.0),
    ],
)
def test_what_its_own_job_may_bring_about_has_a_cooldown(
    given: dict[str, Any], cooldown: float
) -> None:
    wanted = {"name": "s", "repo": "app", "job": {"argv": ["x"]}, **given}
    request = convert(wanted, ScheduleRequest)
    definition = definition_of(request, "repo")
    assert definition.policies.cooldown == cooldown
    again = convert(request_from(definition, "app"), ScheduleRequest)
    assert definition_of(again, "repo") == definition, "it is shown as it is"
