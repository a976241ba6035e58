"""An agent that is played by the script of a test, see `scripted`.

register(ScriptedAgent())
job = await runtime.submit(app, [], agent="scripted", prompt="do it")

async def script(job: ScriptedJob) -> int:
    job.tell(SessionKnown("s1"))
    job.tell(Final(f"done: {job.prompt}", ok=True))
    return 0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from forge_actors.domain.agents import (
    AgentRun,
    Final,
    Invocation,
    LimitHit,
    Login,
    Progress,
    Question,
    SessionGone,
    SessionKnown,
    UsageAdded,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from forge_actors.domain.agents import AgentAdapter, AgentEvent, Usage

_KINDS: dict[str, type[AgentEvent]] = {
    kind.__name__: kind
    for kind in (
        *(SessionKnown, SessionGone, Progress, UsageAdded, LimitHit, Question),
        Final,
    )
}


class ScriptedAgent:
    """The adapter `scripted`. Its sessions can be resumed as long as it is there."""

    name = "scripted"
    provider = None
    program = None
    stop_signal = "SIGTERM"
    grace = 10.0
    ends_after_stop = False
    variables: frozenset[str] = frozenset()
    credentials: frozenset[str] = frozenset()

    def invocation(self, run: AgentRun) -> Invocation:
        """See the port."""
        session = () if run.resume is None else ("--resume", run.resume)
        return Invocation((run.program, *session, *run.arguments))

    def reader(
        self, run: AgentRun, *, now: float, zone: str | None, before: Usage | None
    ) -> _Reader:
        """See the port."""
        return _Reader()

    def keeps(self, session: str, env: Mapping[str, str]) -> bool:
        """See the port."""
        return True

    def login(self, program: str, env: Mapping[str, str]) -> Login:
        """See the port."""
        return Login(True, "it is a script")


class _Reader:
    def line(self, line: bytes) -> Iterable[AgentEvent] | None:
        try:
            told: Any = msgspec.json.decode(line)
            name, fields = told
            return [msgspec.convert(fields, _KINDS[name])]
        except (msgspec.MsgspecError, KeyError, TypeError, ValueError):
            return None

    def end(self, stdout: str, stderr: str) -> Iterable[AgentEvent]:
        return []


if TYPE_CHECKING:
    _is_an_adapter: AgentAdapter = ScriptedAgent()
