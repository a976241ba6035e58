"""Codex, in its mode without a terminal with JSON lines.

The name of a session is the program's own choice and is told in its first line. What it
says of usage counts from the beginning of the session, whoever resumed it. Its limits
are known by their words alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.domain.agents import (
    Final,
    Invocation,
    LimitHit,
    Login,
    Progress,
    SessionGone,
    SessionKnown,
    Usage,
    UsageAdded,
)
from forge_actors.edges.agents.asking import ask
from forge_actors.edges.agents.certificates import CERTIFICATES
from forge_actors.edges.agents.lines import decoded, integer, table, text, type_of
from forge_actors.edges.agents.options import has_option
from forge_actors.edges.agents.refusals import kind_of_text
from forge_actors.edges.agents.reset_times import reset_time
from forge_actors.edges.agents.sessions import has_file, is_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from forge_actors.domain.agents import AgentEvent, AgentRun

#: What an item does, where it is more than words.
_ACTS = {
    "command_execution": "runs a command",
    "file_change": "changes files",
    "mcp_tool_call": "uses a tool",
    "collab_tool_call": "uses a tool",
    "web_search": "searches the web",
}


class Codex:
    """The adapter `codex`."""

    name = "codex"
    provider = "codex"
    program = "codex"
    stop_signal = "SIGTERM"
    grace = 10.0
    ends_after_stop = False
    variables = frozenset({"CODEX_HOME", "OPENAI_BASE_URL", *CERTIFICATES})
    credentials = frozenset({"CODEX_API_KEY", "OPENAI_API_KEY"})

    def invocation(self, run: AgentRun) -> Invocation:
        argv = [run.program, "exec", "--json"]
        modes = ("-s", "--sandbox", "--dangerously-bypass-approvals-and-sandbox")
        if not has_option(run.arguments, *modes):
            argv += ["-s", "workspace-write"]
        argv += run.arguments
        # Its prompt is its whole input, which `-` says.
        argv += ["-"] if run.resume is None else ["resume", run.resume, "-"]
        return Invocation(tuple(argv))

    def reader(
        self, run: AgentRun, *, now: float, zone: str | None, before: Usage | None
    ) -> CodexReader:
        fresh = Usage(0, 0, 0) if run.resume is None else Usage()
        named = "resume" in run.arguments
        return CodexReader(now, zone, before or fresh, named=named)

    def keeps(self, session: str, env: Mapping[str, str]) -> bool:
        pattern = f"sessions/*/*/*/rollout-*-{session}.jsonl"
        return is_name(session) and has_file(env, "CODEX_HOME", ".codex", pattern)

    def login(self, program: str, env: Mapping[str, str]) -> Login:
        if env.get("CODEX_API_KEY"):
            return Login(True, "with a key of the environment")
        answer = ask([program, "login", "status"], env)
        lines = f"{answer.stdout}\n{answer.stderr}".strip().splitlines()
        told = next((line for line in lines if "logged in" in line.lower()), None)
        if told is None:
            return Login(None, answer.problem or "it does not say whether it is")
        if "not logged in" in told.lower():
            return Login(False, "not logged in: run codex login")
        return Login(True, told.strip())


class CodexReader:
    """Reads its events. `before`: what the session had used when it was resumed."""

    def __init__(
        self, now: float, zone: str | None, before: Usage, *, named: bool = False
    ) -> None:
        #: The user has named a session: that one is nobody else's matter.
        self._named = named
        self._now = now
        self._zone = zone
        self._before = before
        self._text = ""
        self._limited = False

    def line(self, line: bytes) -> Iterable[AgentEvent] | None:
        match type_of(line):
            case None:
                return None
            case "thread.started":
                thread = text(decoded(line).get("thread_id"))
                return (SessionKnown(thread),) if thread else ()
            case "item.completed":
                return self._item(table(decoded(line).get("item")))
            case "turn.completed":
                return self._completed(table(decoded(line).get("usage")))
            case "turn.failed":
                return self._failed(
                    text(table(decoded(line).get("error")).get("message"))
                )
            case "error":
                return self._refused(text(decoded(line).get("message")))
            case _:
                return ()

    def end(self, stdout: str, stderr: str) -> Iterator[AgentEvent]:
        if not self._named and "no rollout found for thread id" in stderr:
            yield SessionGone()
        elif not self._limited:
            yield from self._refused(f"{stdout}\n{stderr}".strip())

    def _item(self, item: dict[str, Any]) -> Iterator[AgentEvent]:
        kind = text(item.get("type"))
        if kind == "agent_message":
            self._text = text(item.get("text"))
            yield Progress(self._text)
        elif kind in _ACTS:
            yield Progress(_ACTS[kind], acted=True)

    def _completed(self, usage: dict[str, Any]) -> Iterator[AgentEvent]:
        total = Usage(
            integer(usage.get("input_tokens")),
            integer(usage.get("output_tokens")),
            integer(usage.get("cached_input_tokens")),
        )
        yield UsageAdded(total.since(self._before))
        self._before = total
        yield Final(self._text, True)

    def _failed(self, why: str) -> Iterator[AgentEvent]:
        yield from self._refused(why)
        yield Final(why or "its turn failed", False)

    def _refused(self, why: str) -> Iterator[AgentEvent]:
        kind = kind_of_text(why)
        if kind is not None:
            self._limited = True
            yield LimitHit(kind, why, reset_time(why, self._now, self._zone))
