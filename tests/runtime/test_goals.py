"""Goals of real jobs: commands and agents that act, and a check in the same folder."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec import structs

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobRequest, convert
from forge_actors.domain.rounds import Turn, in_turn
from forge_actors.domain.workflow_views import WorkflowRequest
from forge_actors.edges.cleanup.worktrees.receipts import PRESERVED
from tests.runtime.agents_kit import agents  # noqa: F401 - a fixture
from tests.runtime.control_kit import controlled

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.workflow_views import WorkflowView
    from forge_actors.testing.agents import FakeAgent
    from tests.runtime.control_kit import Case


GOOD = {
    "name": "g",
    "kind": "goal",
    "repo": "app",
    "act": {"job": {"argv": ["true"]}},
    "check": {"job": {"argv": ["true"]}},
}


def goal(act: dict[str, Any], check: str, **fields: Any) -> WorkflowRequest:
    parts = {"act": {"job": act}, "check": {"job": {"argv": ["sh", "-c", check]}}}
    return convert({**GOOD, **parts, **fields}, WorkflowRequest)


async def begun(case: Case, job: str | None, kind: str) -> str:
    """The job of which this is told first, or that job as soon as it is."""
    async for event in case.runtime.events(after=0):
        if event.kind == kind and job in (None, event.job):
            assert event.job is not None
            return event.job
    raise AssertionError("events do not end")


async def ended(case: Case, request: WorkflowRequest) -> WorkflowView:
    made = await case.control.run_workflow(request)
    return await case.control.wait_workflow(made.id)


async def test_a_command_that_acts_is_told_what_the_check_printed(
    tmp_path: Path,
) -> None:
    told = tmp_path / "told"
    act = 'printf "%s %s:" "$0" "$FORGE_GOAL_ROUND"'
    act += '; cat "${FORGE_GOAL_FEEDBACK:-/dev/null}"'
    argv = ["sh", "-c", f"({act}) >> {told}; echo x >> made", "${round}"]
    check = 'printf "\\033[1mred\\033[0m\\n"; test "$(wc -l < made)" -ge 2'
    async with controlled(tmp_path) as case:
        view = await ended(case, goal({"argv": argv, "isolate": True}, check))
        assert (view.state, view.why) == ("succeeded", "the check passed in round 2")
        assert [step.name for step in view.steps] == [
            "act-1",
            "check-1",
            "act-2",
            "check-2",
        ]
        assert view.goal is not None
        assert (view.goal.round, view.goal.rounds) == (2, 8)
        first = view.steps[0].job
        for step in view.steps[1:]:
            assert step.job is not None
            job = await case.control.job(step.job)
            assert job.worktree is not None
            assert job.worktree["of"] == first
            assert f"write:worktree:{first}" in job.claims
            assert (job.name, job.origin) == (step.name, "workflow:g")
    words = told.read_text()
    assert words.startswith(
        "1 1:2 2:The end of what the check printed (stdout):\nred\n"
    )
    assert not (tmp_path / "app" / "made").exists()


async def test_without_isolation_all_of_it_works_in_the_checkout(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        view = await ended(case, goal({"argv": ["touch", "made"]}, "test -e made"))
        assert view.state == "succeeded"
    assert (tmp_path / "app" / "made").exists()


async def test_an_agent_without_a_session_is_begun_again_in_the_same_worktree(
    tmp_path: Path,
) -> None:
    argv = ["sh", "-c", "cat >> said; echo x >> made"]
    act = {"agent": "command", "argv": argv, "prompt": "Mend it."}
    check = 'echo "still red"; test "$(wc -l < made)" -ge 2 && cat said >&2'
    async with controlled(tmp_path) as case:
        view = await ended(case, goal(act, check))
        assert view.state == "succeeded"
        job = view.steps[3].job
        assert job is not None
        said = (await case.control.read_log(job, "stderr", 0, limit=10_000)).data
    text = said.decode()
    assert text.count("Mend it.") == 2
    assert "worked on before, in the same folder" in text
    assert "still red" in text
    assert "This is round 2 of 8" in text


async def test_the_same_failure_over_the_same_files_needs_a_person(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        act = {"argv": ["sh", "-c", "echo x > made"], "isolate": True}
        # What differs from run to run makes no difference.
        check = "echo $$ in /tmp/run-$$-x took 0.$$ s; exit 3"
        view = await ended(case, goal(act, check))
        assert view.state == "human_attention_required"
        assert len(view.steps) == 4
        assert view.why is not None
        assert "rounds 1, 2" in view.why
        [item] = (await case.control.inbox()).items
        assert item.kind == "workflow"
        assert "in circles" in item.says
        again = await case.control.retry_workflow("g")
        assert again.id == view.id
        assert (await case.control.inbox()).items == []
        view = await case.control.wait_workflow(view.id)
        assert view.state == "human_attention_required"
        assert len(view.steps) == 8
        assert len((await case.control.inbox()).items) == 1
        # Other files, or another end of the check, are another state.
        act = {"argv": ["sh", "-c", "echo x >> made"], "isolate": True}
        view = await ended(case, goal(act, check, goal={"rounds": 3}))
        assert view.state == "failed"
        assert view.why is not None
        assert view.why.startswith("its 3 rounds are over (3 rounds, ")


@pytest.mark.parametrize("held", [False, True])
async def test_an_act_that_runs_or_waits_when_the_time_is_over_is_ended(
    tmp_path: Path, *, held: bool
) -> None:
    async with controlled(tmp_path) as case:
        if held:
            await case.hold(read_only=False)
        act = {"argv": ["sleep", "600"]}
        view = await ended(case, goal(act, "true", goal={"time": 1}))
        assert view.state == "failed"
        assert view.why is not None
        assert view.why.startswith("its 1 s are over")


async def test_an_agent_goes_on_with_its_session_and_what_it_used_is_counted(
    tmp_path: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["claude"].play("echoes")
    act = {"agent": "claude", "argv": [], "prompt": "Mend it.", "labels": ["x"]}
    async with controlled(tmp_path) as case:
        request = goal(act, "echo red; exit 1", goal={"rounds": 2, "repeats": 3})
        view = await ended(case, request)
        assert view.state == "failed"
        jobs = [await case.control.job(step.job or "") for step in view.steps]
        first, check, second, _ = jobs
        assert first.agent is not None
        assert second.agent is not None
        assert second.agent.continues == first.id
        assert (second.agent.session, second.agent.resumed) == (
            first.agent.session,
            True,
        )
        assert "red" in second.agent.text
        assert "This is round 2 of 2" in second.agent.text
        assert "Mend it." not in second.agent.text, "its session knows that"
        assert (second.name, second.labels) == ("act-2", ["x"])
        assert check.worktree is not None
        assert check.worktree["of"] == first.id
        assert view.goal is not None
        assert view.goal.used_tokens > 0
        usage = (await case.control.usage("job")).total
        used = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        assert view.goal.used_tokens == used
        # One round may use what is left; that is spent at once.
        limit = {"tokens": used, "repeats": 9}
        request = goal({**act, "budget_tokens": 10**6}, "exit 1", goal=limit)
        view = await ended(case, request)
        assert view.state == "failed"
        assert view.why is not None
        assert f"its {used:,} tokens are used" in view.why


async def test_a_turn_is_made_once_whatever_became_of_what_it_was_made_from(
    tmp_path: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["claude"].play("works")
    async with controlled(tmp_path) as case:
        act = {"agent": "claude", "argv": [], "prompt": "Mend it.", "name": "first"}
        request = convert({**act, "repo": "app"}, JobRequest)
        [first] = await case.control.submit([request])
        await begun(case, first.id, "agent_session")
        await case.control.cancel(first.id)
        await case.control.wait([first.id])
        submit = case.control.running_workflows._context.submit
        own = {"name": "act-2", "request_id": "wf-1", "origin": "workflow:g"}
        turn = Turn("act", 2, 2, 8, before=(first.id,), why="it was cancelled")
        made = in_turn(structs.replace(request, **own, timeout=500), turn)
        [job] = await submit([made])
        await begun(case, job, "agent_session")
        # It goes on with the session now, so nobody else could.
        assert await submit([made]) == [job]
        view = await case.control.job(job)
        assert view.agent is not None
        assert (view.agent.continues, view.name) == (first.id, "act-2")
        assert view.budgets["execution"] == 500
        await case.end(job)
        assert await submit([made]) == [job]


@pytest.mark.parametrize("kept", [True, False])
async def test_a_worktree_that_was_removed_between_two_jobs_is_made_again(
    tmp_path: Path, kept: bool
) -> None:
    async with controlled(tmp_path) as case:
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        argv = ["sh", "-c", f"echo x > made; read _ < {gate}"]
        made = await case.control.run_workflow(
            goal({"argv": argv, "isolate": True}, "cat made" if kept else "true")
        )
        job = await begun(case, None, "job_running")
        await case.control.pause_workflow(made.id)
        await trio.to_thread.run_sync(gate.write_text, "go\n")
        await case.control.wait([job])
        [removed] = await case.control.remove_worktrees([job], force=True)
        assert removed.removed
        if not kept:
            shutil.rmtree(tmp_path / "home" / PRESERVED)
        await case.control.resume_workflow(made.id)
        view = await case.control.wait_workflow(made.id)
        if kept:
            assert view.state == "succeeded", view.why
        else:
            # The checkout would pass, which says nothing of the work.
            assert view.state == "human_attention_required", view.why
            assert f"that of job {job} is gone" in str(view.why)


#: What makes the good one bad, and the field that is told.
BAD: list[tuple[dict[str, Any], str]] = [
    ({"steps": [{"name": "a", "gate": "?"}]}, "step"),
    ({"act": None}, "act"),
    ({"check": None}, "check"),
    ({"repo": None}, "workflow.repo"),
    ({"repo": "no"}, "act.repo"),
    ({"goal": {"rounds": 0}}, "goal.rounds"),
    ({"goal": {"rounds": 101}}, "goal.rounds"),
    ({"goal": {"repeats": 1}}, "goal.repeats"),
    ({"goal": {"failures": 0}}, "goal.failures"),
    ({"goal": {"time": "soon"}}, "goal.time"),
    ({"goal": {"tokens": 0}}, "goal.tokens"),
    ({"goal": {"cost": 0}}, "goal.cost"),
    ({"act": {"job": {"argv": ["${x}"]}}}, "act.job"),
    ({"act": {"job": {"argv": ["x"], "cwd": "no"}}}, "act.job.cwd"),
    ({"act": {"job": {"argv": ["x"], "in_worktree": "y"}}}, "act.job.in_worktree"),
    ({"check": {"job": {"argv": [], "agent": "claude"}}}, "check.job.agent"),
]


async def test_a_goal_that_cannot_be_is_refused_whole(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        for fields, field in BAD:
            with pytest.raises(InvalidInput) as refused:
                await case.control.run_workflow(
                    convert({**GOOD, **fields}, WorkflowRequest)
                )
            assert refused.value.field == field
        assert await case.control.workflows() == []


async def test_a_job_may_work_in_the_worktree_of_another(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.add("other")
        first = await case.submit("app", "touch", "made", isolate=True, read_only=False)
        await case.control.wait([first])
        job = await case.submit("app", "test", "-e", "made", in_worktree=first)
        again = await case.submit("app", "rm", "made", in_worktree=job, claims=[])
        views = await case.control.wait([job, again])
        for view in views:
            assert view.state == "succeeded"
            assert view.worktree is not None
            assert view.worktree["of"] == first
            assert view.claims == [f"write:worktree:{first}"]
        plain = await case.submit("app", "true")
        for repo, fields, field in (
            ("app", {"in_worktree": plain}, "in_worktree"),
            ("app", {"in_worktree": "nothing"}, "in_worktree"),
            ("other", {"in_worktree": first}, "in_worktree"),
            ("app", {"in_worktree": first, "isolate": True}, "isolate"),
            ("app", {"in_worktree": first, "branch": "x"}, "branch"),
        ):
            with pytest.raises(InvalidInput) as refused:
                await case.control.submit([JobRequest(repo, ["true"], **fields)])
            assert refused.value.field == field
        [removed] = await case.control.remove_worktrees([first], force=True)
        assert removed.removed
        with pytest.raises(InvalidInput, match=f"worktree restore {first}"):
            await case.submit("app", "true", in_worktree=first)
