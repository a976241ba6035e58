"""Policies of a runtime: what is refused, what waits, what goes on, what is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from forge_actors.client import offline_home, offline_policy
from forge_actors.domain.errors import (
    AdmissionBlocked,
    InvalidInput,
    NotConverging,
    NotFound,
    Outdated,
)
from forge_actors.domain.policies import PolicyRequest
from forge_actors.domain.policy_changes import policy_set
from forge_actors.domain.requests import JobRequest, Parent
from forge_actors.domain.schedule_views import ScheduleRequest
from tests.runtime.admission_kit import admission, ended
from tests.runtime.control_kit import controlled
from tests.runtime.kit import running
from tests.runtime.test_delegation import dispatch

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.policies import Mode
    from tests.runtime.admission_kit import Case
    from tests.runtime.control_kit import Case as RuntimeCase

WORK = "wf-1"


async def become(case: Case, mode: Mode, **policy: Any) -> None:
    before = case.store.read_policy()
    made = structs.replace(before, mode=mode, revision=before.revision + 1, **policy)
    await case.store.save([policy_set(made, before, 9.0, "")]).wait()


async def test_convergence_lets_in_nothing_new(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        known = await case.submit("make", request_id="r")
        done = await case.submit("make")
        of_work = await case.submit("make", work=WORK)
        runs = await case.submit("make")
        await case.store.save([ended(done), ended(of_work)]).wait()
        await dispatch(case, runs, 1, 5)
        await become(case, "convergence", reason="release")
        jobs = case.jobs().keys()
        for options in ({}, {"origin": "job:0000000000000000000"}, {"request_id": "n"}):
            with pytest.raises(AdmissionBlocked) as told:
                await case.submit("new", **options)
            assert told.value.code == "WORK_ADMISSION_BLOCKED:CONVERGENCE"
            assert "(release); forge-actors policy normal ends that" in str(told.value)
        batch = [JobRequest("app", ["a"], work=WORK), JobRequest("app", ["b"])]
        with pytest.raises(AdmissionBlocked):
            await case.admission.submit(batch)
        with pytest.raises(AdmissionBlocked):
            await case.admission.again.retry([done.id], "cli")
        assert case.jobs().keys() == jobs
        # What was accepted before, what belongs to something open, what that submits.
        assert (await case.submit("make", request_id="r")).id == known.id
        await case.submit("step", work=WORK)
        await case.submit("child", parent=Parent(runs.id, 1, 5))
        await case.submit("child", origin=f"job:{runs.id}")
        await case.admission.again.retry([of_work.id], "cli")
        await become(case, "normal")
        await case.submit("new")


@pytest.mark.parametrize("mode", ["exclusive", "maintenance"])
async def test_what_only_waits_is_accepted(tmp_path: Path, mode: Mode) -> None:
    async with admission(tmp_path) as case:
        await become(case, mode, work=WORK if mode == "exclusive" else None)
        assert (await case.submit("new")).state == "queued"


async def test_a_policy_is_shown_where_people_look(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        control = case.control
        assert (await control.policy()).mode == "normal"
        request = PolicyRequest(
            "maintenance", for_="2h", reason="disk; token=ghp_" + "a" * 36
        )
        view = await control.set_policy(request)
        assert (view.mode, view.revision) == ("maintenance", 1)
        assert "ghp_" not in view.reason
        assert view.until is not None
        assert "nothing is started during maintenance (disk;" in view.note
        job = await case.submit()
        explained, waiting = await case.why(job)
        assert waiting["kind"] == "policy"
        assert "forge-actors policy normal ends that" in explained.sentence
        assert "not before" in explained.sentence
        status: Any = await control.status()
        assert status["policy"]["note"] == view.note
        assert status["ready"] is True
        # Everything else goes on.
        job_ = {"argv": ["true"]}
        schedule = ScheduleRequest(name="s", repo="app", manual=True, job=job_)
        await control.add_schedule(schedule)
        told = await control.run_schedule("s", "wish")
        assert told.job is None
        await control.set_policy(PolicyRequest("normal", revision=1))
        [ended_] = await control.wait([job])
        assert ended_.state == "succeeded"
        async for event in case.runtime.events(after=0):
            if (event.kind, event.data.get("decision")) == ("schedule_decided", "run"):
                break
        kinds = [
            (event.data["mode"], event.data["before"])
            async for event in _first(case.runtime, "policy_changed", 2)
        ]
        assert kinds == [("maintenance", "normal"), ("normal", "maintenance")]


async def of_work(case: RuntimeCase) -> None:
    """A job that a workflow submits."""
    request = JobRequest("app", ["true"], work=WORK)
    await case.runtime.control._admission.submit([request])


async def _first(runtime: Any, kind: str, count: int) -> Any:
    async for event in runtime.events(after=0):
        if event.kind == kind:
            yield event
            count -= 1
            if not count:
                return


async def test_a_request_is_checked_before_anything_is_changed(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        for request, field in (
            (PolicyRequest("exclusive"), "work"),
            (PolicyRequest("maintenance", until="2020-01-01"), "until"),
            (PolicyRequest("maintenance", until="soon"), "until"),
            (PolicyRequest("maintenance", for_="0s"), "for"),
        ):
            with pytest.raises(InvalidInput) as told:
                await case.control.set_policy(request)
            assert told.value.field == field
        with pytest.raises(Outdated):
            await case.control.set_policy(PolicyRequest("convergence", revision=7))
        unknown = PolicyRequest("exclusive", work="wf-2")
        with pytest.raises(NotFound, match="no workflow and no EPIC run 'wf-2'"):
            await case.control.set_policy(unknown)
        await of_work(case)
        wanted = PolicyRequest("exclusive", work=WORK)
        with pytest.raises(NotConverging):
            await case.control.set_policy(wanted, narrows=True)
        assert (await case.control.policy()).revision == 0


async def test_it_outlives_the_runtime_and_is_read_without_one(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    async with controlled(tmp_path) as case:
        await of_work(case)
        await case.control.set_policy(PolicyRequest("convergence", reason="end"))
        with pytest.raises(AdmissionBlocked):
            await case.submit()
        narrowed = PolicyRequest("exclusive", work=WORK, reason="last")
        view = await case.control.set_policy(narrowed, narrows=True)
        job = await case.submit()
    kept = offline_policy.policy(home)
    assert kept == {name: getattr(view, name) for name in view.__struct_fields__}
    assert offline_home.status(home)["policy"] == kept
    async with running(tmp_path / "home") as runtime:
        assert await runtime.control.policy() == view
        assert (await runtime.control.why(job)).waiting["kind"] == "policy"  # type: ignore[index]
        await runtime.control.set_policy(PolicyRequest("normal"))
        [told] = await runtime.control.wait([job])
        assert told.state == "succeeded"
