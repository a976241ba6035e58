"""What every adapter keeps with its program, as checks to run against one.

Call each of `CHECKS` with a `Stage`: the adapter, a program to run it on, and what
makes that program play. Those that play and the real ones pass the same checks.
"""

from __future__ import annotations

import signal
import uuid
from typing import TYPE_CHECKING, Literal, Protocol

import trio
from msgspec import structs

from forge_actors.domain.agents import Usage
from forge_actors.edges.agents.finding import probe
from forge_actors.testing.agents.running import Ran, running

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from forge_actors.domain.agents import AgentAdapter

    Check = Callable[["Stage"], Awaitable[None]]

Scene = Literal["success", "rate", "auth", "works"]

#: Words that are in no argument and no error.
PROMPT = "Say done. MARK-OF-THE-PROMPT"
#: What a program that refuses too many requests may be taken for.
REFUSED = {"rate", "usage", "overload"}
#: The tokens of one short answer, as each tells them; one knows nothing of a cache.
USED = {
    "claude": Usage(125, 7, 5),
    "codex": Usage(120, 7, 5),
    "copilot": Usage(120, 7),
}
#: How each ends when it is asked to stop in the middle of its work.
STOPPED = {"claude": 143, "codex": -signal.SIGTERM, "copilot": -signal.SIGTERM}
#: Seconds in which whatever is checked has happened.
PATIENCE = 100.0


class Stage(Protocol):
    """One adapter, and a program that does as it is told."""

    adapter: AgentAdapter
    program: Path
    #: A folder to work in, and the environment of the program.
    folder: Path
    env: Mapping[str, str]
    #: Arguments of the user's.
    arguments: tuple[str, ...]

    def play(self, scene: Scene) -> None:
        """What its next start comes to."""

    async def at_work(self, ran: Ran) -> None:
        """Wait until one that plays `works` is in the middle of it."""

    def let_go(self) -> None:
        """Its work may go on; called after it was asked to stop."""


def _running(
    stage: Stage,
    *,
    session: str | None = None,
    resume: str | None = None,
    before: Usage | None = None,
) -> AbstractAsyncContextManager[Ran]:
    return running(
        stage.adapter,
        stage.program,
        PROMPT,
        cwd=stage.folder,
        env=stage.env,
        session=session,
        resume=resume,
        arguments=stage.arguments,
        before=before,
    )


async def _run(stage: Stage, scene: Scene) -> Ran:
    stage.play(scene)
    async with _running(stage, session=str(uuid.uuid4())) as ran:
        pass
    return ran


async def check_a_good_run_is_told_as_one(stage: Stage) -> None:
    ran = await _run(stage, "success")
    assert ran.status == 0, ran.stderr
    assert ran.good
    told = ran.report
    assert told.ok
    assert "done" in told.text
    assert told.session
    assert told.limit is None
    assert told.usage is not None
    assert structs.replace(told.usage, cost=None) == USED[stage.adapter.name]
    # What it costs is told by one, and for the others it is unknown and not nothing.
    assert (told.usage.cost is not None) is (stage.adapter.name == "claude")
    assert told.usage.cost != 0


async def check_too_many_requests_are_told_as_a_limit(stage: Stage) -> None:
    ran = await _run(stage, "rate")
    assert ran.status == 1
    assert not ran.good
    assert ran.report.limit is not None, ran.stdout
    assert ran.report.limit.kind in REFUSED


async def check_a_wrong_login_is_told_as_one(stage: Stage) -> None:
    ran = await _run(stage, "auth")
    assert ran.status == 1
    assert not ran.good
    assert ran.report.limit is not None, ran.stdout + ran.stderr
    assert ran.report.limit.kind == "auth"


async def check_one_that_is_stopped_at_work_is_not_good(stage: Stage) -> None:
    stage.play("works")
    session = str(uuid.uuid4())
    async with _running(stage, session=session) as ran:
        await stage.at_work(ran)
        ran.stop(signal.Signals[stage.adapter.stop_signal])
        stage.let_go()
    assert ran.status == STOPPED[stage.adapter.name]
    assert not ran.good


async def check_a_session_that_was_killed_is_resumed(stage: Stage) -> None:
    begun = await _run(stage, "success")
    session, used = begun.report.session, begun.report.usage
    assert session is not None, "it was chosen, or was told"
    assert stage.adapter.keeps(session, stage.env)
    stage.play("works")
    async with _running(stage, resume=session, before=used) as killed:
        await stage.at_work(killed)
        killed.stop(signal.SIGKILL)
        stage.let_go()
    assert killed.status == -signal.SIGKILL
    assert not killed.good
    assert killed.report.session == session
    stage.play("success")
    async with _running(stage, resume=session, before=used) as resumed:
        pass
    assert resumed.good, resumed.stdout + resumed.stderr
    assert resumed.report.session == session
    # What was used before it was resumed does not count a second time.
    assert resumed.report.usage == used


async def check_a_session_that_is_gone_is_no_success(stage: Stage) -> None:
    stage.play("success")
    session = str(uuid.uuid4())
    assert not stage.adapter.keeps(session, stage.env)
    async with _running(stage, resume=session) as ran:
        pass
    assert ran.status == 1
    assert not ran.good
    assert ran.report.session_gone


async def check_nothing_private_is_an_argument(stage: Stage) -> None:
    ran = await _run(stage, "success")
    keys = [stage.env[n] for n in stage.adapter.credentials if n in stage.env]
    for argument in ran.argv:
        assert "MARK-OF-THE-PROMPT" not in argument
        assert not any(key in argument for key in keys)


async def check_a_probe_finds_the_program_and_its_version(stage: Stage) -> None:
    stage.play("success")
    env = {**stage.env, "PATH": f"{stage.program.parent}:{stage.env['PATH']}"}
    # How soon it answers is a matter of what else the machine does.
    found = await trio.to_thread.run_sync(probe, stage.adapter, env, PATIENCE)
    assert found.path == str(stage.program)
    assert found.version is not None, found
    assert found.version[0].isdigit()
    assert found.usable


CHECKS: tuple[Check, ...] = (
    check_a_good_run_is_told_as_one,
    check_too_many_requests_are_told_as_a_limit,
    check_a_wrong_login_is_told_as_one,
    check_one_that_is_stopped_at_work_is_not_good,
    check_a_session_that_was_killed_is_resumed,
    check_a_session_that_is_gone_is_no_success,
    check_nothing_private_is_an_argument,
    check_a_probe_finds_the_program_and_its_version,
)
