"""Jobs of agents whose work has to pass a check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.client import offline
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobQuery
from forge_actors.runtime.views import as_json
from forge_actors.testing.agents import NAMES, FakeAgent
from tests.runtime.agents_kit import agents  # noqa: F401 - a fixture
from tests.runtime.embedding_kit import (
    home,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
)
from tests.runtime.kit import running

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors import Runtime
    from forge_actors.domain.jobs import JobView

#: Passes from its second run on; it leaves the work as it is.
SECOND = "echo tried >> $HOME/tries; echo MARK-4711; test $(wc -l < $HOME/tries) -ge 2"


async def run(
    runtime: Runtime, repo: Path, agent: str, verify: str, **options: object
) -> JobView:
    job = await runtime.submit(
        repo, [], agent=agent, prompt="Do it.", verify=verify, **options
    )
    return await job.wait()


async def log(runtime: Runtime, job: str, attempt: int) -> bytes:
    chunk = await runtime.control.read_log(
        job, "stdout", 0, limit=100_000, attempt=attempt
    )
    return chunk.data


@pytest.mark.parametrize("name", NAMES)
async def test_a_job_succeeds_when_its_check_has_passed(
    name: str, repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents[name].play("success", file="made.txt")
    async with running(home) as runtime:
        view = await run(
            runtime, repo, name, "pwd; cat made.txt", isolate=True, timeout="1h"
        )
        assert (view.state, view.attempt, view.error) == ("succeeded", 2, None)
        assert view.worktree is not None
        told = await log(runtime, view.id, 2)
        assert told.decode() == f"{view.worktree['path']}\nmade\n"
        [usage] = (await runtime.control.usage("job", None)).groups
    assert view.verify == {
        "command": "pwd; cat made.txt",
        "timeout": 3600.0,
        "step": "check",
        "round": 0,
        "rounds": 3,
        "checks": [2],
    }
    # What is told of the agent is not lost with the attempt that follows it.
    assert view.agent is not None
    assert view.agent.text == "done"
    assert view.agent.session
    assert view.agent.usage is not None
    assert view.agent.usage.output_tokens == 7
    # A check uses nothing, and is no attempt of an agent.
    assert usage.attempts == 1


@pytest.mark.parametrize("name", NAMES)
async def test_what_a_check_finds_is_given_back_in_the_same_session(
    name: str, repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents[name].play("echoes")
    async with running(home) as runtime:
        view = await run(runtime, repo, name, SECOND)
        [usage] = (await runtime.control.usage("job", None)).groups
    assert (view.state, view.attempt) == ("succeeded", 4)
    assert view.verify is not None
    assert (view.verify["round"], view.verify["checks"]) == (1, [2, 4])
    assert view.agent is not None
    assert view.agent.resumed
    assert "MARK-4711" in view.agent.text
    assert "exit status 1" in view.agent.text
    assert view.agent.text.endswith(f"[{view.agent.session}]")
    # Each round counts.
    assert usage.attempts == 2
    assert usage.output_tokens == 14
    assert view.agent.usage is not None
    assert view.agent.usage.output_tokens == 14


async def test_an_agent_without_sessions_is_told_what_it_was_asked(
    repo: Path, home: Path
) -> None:
    argv = ["sh", "-c", "cat >> asked.txt; echo my words"]
    check = f"{SECOND} && cat asked.txt"
    async with running(home) as runtime:
        job = await runtime.submit(
            repo, argv, agent="command", prompt="Do it.", verify=check
        )
        view = await job.wait()
        told = (await log(runtime, view.id, 4)).decode()
    assert view.state == "succeeded"
    for words in ("Do it.", "my words", "MARK-4711", "Round".lower()):
        assert words in told


async def test_rounds_are_bounded_and_the_last_failure_is_told(
    repo: Path, home: Path
) -> None:
    argv = ["sh", "-c", "cat > asked.txt; date +%N >> work.txt; echo done"]
    check = "echo on stdout; echo on stderr >&2; exit 9"
    async with running(home) as runtime:
        job = await runtime.submit(
            repo,
            argv,
            agent="command",
            prompt="Do it.",
            verify=check,
            verify_rounds=2,
        )
        view = await job.wait()
        sentence = (await runtime.control.why(view.id)).sentence
    assert view.state == "failed"
    assert view.attempt == 6
    assert view.error is not None
    assert view.error.code == "VERIFY_FAILED"
    assert view.error.message == (
        "its check failed, exit status 9; the last of 2 rounds of mending is over"
        "\non stdout\non stderr"
    )
    assert "VERIFY_FAILED" in sentence
    assert view.verify is not None
    assert view.verify["checks"] == [2, 4, 6]


async def test_nothing_is_mended_where_a_round_changed_nothing(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["claude"].play("success", file="made.txt")
    check = "echo failed after 0.$$ s; exit 1"
    async with running(home) as runtime:
        view = await run(runtime, repo, "claude", check, verify_rounds=9)
    assert (view.state, view.attempt) == ("failed", 4)
    assert view.error is not None
    assert view.error.code == "VERIFY_FAILED"
    assert "round 1 changed nothing" in view.error.message


async def test_without_rounds_the_first_failure_is_the_end(
    repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        view = await run(runtime, repo, "codex", "exit 3", verify_rounds=0)
    assert (view.state, view.attempt) == ("failed", 2)
    assert view.error is not None
    assert "no round of mending was asked for" in view.error.message


async def test_a_check_has_a_time_limit_of_its_own(repo: Path, home: Path) -> None:
    async with running(home) as runtime:
        view = await run(
            runtime,
            repo,
            "codex",
            "exec sleep 4711",
            verify_timeout=1,
            verify_rounds=0,
            idle_timeout="1h",
        )
    assert view.state == "failed"
    assert view.error is not None
    assert "it ran longer than it may" in view.error.message


async def test_a_spent_budget_leaves_nothing_to_mend_with(
    repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        view = await run(runtime, repo, "claude", "false", budget_tokens=1)
    assert (view.state, view.attempt) == ("failed", 2)
    assert view.error is not None
    assert view.error.code == "VERIFY_FAILED"
    assert "its budget is spent" in view.error.message


async def test_work_that_is_not_good_is_not_checked(
    repo: Path, home: Path, agents: dict[str, FakeAgent], tmp_path: Path
) -> None:
    agents["claude"].play("error")
    async with running(home) as runtime:
        view = await run(runtime, repo, "claude", "touch $HOME/checked")
    assert (view.state, view.attempt) == ("failed", 1)
    assert view.error is not None
    assert view.error.code == "EXIT_NONZERO"
    assert not (tmp_path / "checked").exists()


async def test_a_retry_begins_with_the_work_and_has_all_its_rounds(
    repo: Path, home: Path, agents: dict[str, FakeAgent]
) -> None:
    agents["codex"].play("echoes")
    async with running(home) as runtime:
        first = await run(runtime, repo, "codex", "false", verify_rounds=1)
        assert first.state == "failed"
        agents["codex"].play("echoes", file="ok")
        [again] = await runtime.control.retry([first.id])
        [view] = await runtime.control.wait([again.id])
        assert view.state == "failed"
        assert view.attempt == 4
        resumed = await runtime.control.continue_job(first.id, "More.")
        [more] = await runtime.control.wait([resumed.id])
    assert more.verify is not None
    assert more.verify["checks"] == [2, 4]
    assert more.agent is not None
    assert first.agent is not None
    assert more.agent.session == first.agent.session
    assert more.agent.resumed


async def test_the_jobs_read_the_same_where_nothing_serves_them(
    repo: Path, home: Path
) -> None:
    async with running(home) as runtime:
        await run(runtime, repo, "codex", "true", isolate=False)
        await run(runtime, repo, "claude", "false", verify_rounds=0, isolate=False)
        served = [as_json(view) for view in await runtime.jobs(JobQuery())]
    assert offline.jobs(str(home), []) == served


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"verify": "true"}, "verify"),
        ({"agent": "codex", "prompt": "x", "verify": " "}, "verify"),
        ({"agent": "codex", "prompt": "x", "verify_rounds": 1}, "verify_rounds"),
        ({"agent": "codex", "prompt": "x", "verify_timeout": 9}, "verify_timeout"),
        (
            {"agent": "codex", "prompt": "x", "verify": "true", "verify_rounds": 21},
            "verify_rounds",
        ),
        (
            {"agent": "codex", "prompt": "x", "verify": "true", "verify_timeout": 0.5},
            "verify_timeout",
        ),
    ],
)
async def test_what_makes_no_check_is_refused(
    options: dict[str, object], field: str, repo: Path, home: Path
) -> None:
    argv = [] if "agent" in options else ["true"]
    async with running(home) as runtime:
        with pytest.raises(InvalidInput) as refused:
            await runtime.submit(repo, argv, **options)
    assert refused.value.field == field
