"""The phases of an issue as jobs: what they are asked, and what they come to."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from msgspec import structs

from forge_actors.domain.epic.asking import NOTES, OUTCOME
from forge_actors.domain.epic.phases import Outcome, after
from forge_actors.domain.epic.records import EngineState, RunKey, assignment
from forge_actors.domain.requests import JobQuery
from forge_actors.runtime.epic_phases import PhaseJobs
from forge_actors.runtime.settings import settings_from
from tests.runtime.agents_kit import agents  # noqa: F401 - a fixture
from tests.runtime.embedding_kit import repo  # noqa: F401 - a fixture
from tests.runtime.kit import running

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from forge_actors import Runtime
    from forge_actors.domain.epic.phases import WorkPhase
    from forge_actors.runtime.epic_settings import EpicSettings
    from forge_actors.testing.agents import FakeAgent

KEY = RunKey(101, 12)
NOW = "2026-11-30T18:00:00Z"
TASK = assignment(KEY, 9012, "https://github.com/o/d/issues/12", "A title", "MARK-4711")


def begun(**more: Any) -> EngineState:
    state = EngineState(
        run_key=KEY,
        issue_url=TASK.url,
        run_id="r-0123456789",
        phase="implement",
        config_digest=f"sha256:{'0' * 64}",
        branch="b",
        base_commit="a" * 40,
        tries={},
        updated_at=NOW,
    )
    return structs.replace(state, **more)


def shell(script: str) -> dict[str, Any]:
    return {"argv": ["sh", "-c", script]}


def epic(**phases: dict[str, Any]) -> EpicSettings:
    return settings_from({"epic": {"phases": phases}}).epic


@asynccontextmanager
async def phases(
    repo: Path, settings: EpicSettings
) -> AsyncIterator[tuple[Runtime, PhaseJobs]]:
    async with running(None) as runtime:
        yield runtime, PhaseJobs(runtime, str(repo), TASK, 7, settings)


async def test_a_command_says_by_its_status_and_its_output_what_it_came_to(
    repo: Path,
) -> None:
    said = "printf '%s\\n' >> $FORGE_OUTPUT "
    cases: list[tuple[WorkPhase, str, str, str]] = [
        ("prepare", "exit 0", "passed", ""),
        ("prepare", "echo broken >&2; exit 3", "failed", "broken"),
        ("check", "echo 2 failed; exit 1", "findings", "2 failed"),
        ("check", f"{said} {OUTCOME}=blocked {NOTES}=why; exit 1", "blocked", "why"),
        ("check", f"{said} {OUTCOME}=passed; exit 1", "findings", "exit status 1"),
        ("check", f"{said} {OUTCOME}=done {NOTES}=nothing", "done", "nothing"),
        ("check", "exec /no/such", "findings", "/no/such"),
        ("implement", "grep -q Title:.A.title || exit 9", "passed", ""),
        ("implement", "exit 9", "failed", "9"),
        ("review", f"echo no tests; echo {OUTCOME}: findings", "findings", "no tests"),
        ("review", "exit 1", "findings", ""),
        ("review", "true", "passed", ""),
    ]
    async with running(None) as runtime:
        for number, (phase, script, kind, words) in enumerate(cases, start=1):
            jobs = PhaseJobs(
                runtime, str(repo), TASK, 7, epic(**{phase: shell(script)})
            )
            state = begun(phase=phase, run_id=f"r-{number:010}")
            outcome = await jobs.run(state, phase)
            assert (outcome.kind, words in outcome.text) == (kind, True), outcome
            assert outcome.job is not None
        for view in await runtime.jobs(JobQuery(limit=100)):
            assert "MARK-4711" not in json.dumps(view.argv)


async def test_a_try_that_was_begun_is_found_again_and_not_done_twice(
    repo: Path,
) -> None:
    async with phases(repo, epic(check=shell("echo x >> ran; exit 1"))) as (_, jobs):
        state = begun(phase="check")
        first = await jobs.run(state, "check")
        assert await jobs.run(state, "check") == first
        assert (repo / "ran").read_text() == "x\n"
        again = await jobs.run(structs.replace(state, tries={"check": 1}), "check")
        assert again.job != first.job


async def test_an_agent_mends_in_its_session_and_a_review_begins_anew(
    repo: Path, agents: dict[str, FakeAgent]
) -> None:
    settings = epic(implement={"agent": "claude"}, review={"agent": "codex"})
    plan = settings.plan()
    agents["claude"].play("echoes")
    async with phases(repo, settings) as (runtime, jobs):
        state = begun()
        worked = await jobs.run(state, "implement")
        assert worked.kind == "passed", worked
        state = after(state, "implement", worked, plan, NOW)
        agents["codex"].play(text=f"Two tests are missing.\n\n{OUTCOME}: findings")
        found = await jobs.run(state, "review")
        assert (found.kind, found.text) == ("findings", "Two tests are missing.")
        state = after(state, "review", found, plan, NOW)
        assert state.phase == "implement"
        again = await jobs.run(state, "implement")
        assert again.job is not None
        assert worked.job is not None
        before = (await runtime.control.job(worked.job)).agent
        view = (await runtime.control.job(again.job)).agent
        assert before is not None
        assert view is not None
        assert (view.resumed, view.session) == (True, before.session)
        assert view.continues == worked.job
        assert "Two tests are missing." in view.text
        assert "MARK-4711" not in view.text, "it knows that from its session"
        state = after(state, "implement", again, plan, NOW)
        agents["codex"].play(text="fine")
        assert (await jobs.run(state, "review")).kind == "failed", "no verdict is none"
        state = structs.replace(state, tries={"implement": 2, "review": 2})
        agents["codex"].play(text=f"fine\n{OUTCOME}: passed")
        passed = await jobs.run(state, "review")
        assert passed.kind == "passed"
        assert passed.job is not None
        third = (await runtime.control.job(passed.job)).agent
        assert third is not None
        assert not third.resumed


async def test_an_agent_that_asks_takes_a_person_and_one_that_fails_has_failed(
    repo: Path, agents: dict[str, FakeAgent]
) -> None:
    async with phases(repo, epic(implement={"agent": "claude"})) as (_, jobs):
        agents["claude"].play("asks")
        asked = await jobs.run(begun(), "implement")
        assert asked.kind == "blocked"
        assert asked.text.startswith("it asks: ")
        agents["claude"].play("auth")
        later = await jobs.run(begun(tries={"implement": 9}), "implement")
        assert later.kind == "later", later
        agents["claude"].play("failed_silently")
        failed = await jobs.run(begun(tries={"implement": 1}), "implement")
        assert failed == Outcome("failed", failed.text, failed.job)
        assert "something broke" in failed.text
