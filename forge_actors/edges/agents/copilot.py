"""GitHub Copilot's command line, without a terminal, with JSON lines.

Asked to stop while it waits for a model it goes on until that has answered, ten seconds
and more; then it tells a good end and dies of the signal all the same. So an end that
was told after the stop proves nothing. Its output tells no tokens. They are in the file
of its telemetry, a span for each call of a model; what it says of a cost there is not
in money.
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
from forge_actors.edges.agents.certificates import CERTIFICATES
from forge_actors.edges.agents.lines import (
    decoded,
    integer,
    table,
    tables,
    text,
    type_of,
)
from forge_actors.edges.agents.options import has_option
from forge_actors.edges.agents.refusals import kind_of_status, kind_of_text
from forge_actors.edges.agents.reset_times import reset_time
from forge_actors.edges.agents.sessions import has_file, is_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from forge_actors.domain.agents import AgentEvent, AgentRun, LimitKind

#: What is in every line about the call of a model.
_CALL = b'"chat"'
_ERRORS: dict[str, LimitKind] = {
    "rate_limit": "rate",
    "authentication": "auth",
    "quota": "usage",
    "quota_exceeded": "usage",
}


class Copilot:
    """The adapter `copilot`."""

    name = "copilot"
    provider = "github-copilot"
    program = "copilot"
    stop_signal = "SIGTERM"
    grace = 15.0
    ends_after_stop = True
    variables = frozenset(
        {
            "COPILOT_HOME",
            "COPILOT_MODEL",
            "COPILOT_OFFLINE",
            "COPILOT_PROVIDER_BASE_URL",
            "COPILOT_PROVIDER_TYPE",
            "COPILOT_PROVIDER_WIRE_API",
            "GH_HOST",
            *CERTIFICATES,
        }
    )
    credentials = frozenset(
        {
            "COPILOT_GITHUB_TOKEN",
            "COPILOT_PROVIDER_API_KEY",
            "COPILOT_PROVIDER_BEARER_TOKEN",
            "GH_TOKEN",
            "GITHUB_TOKEN",
        }
    )

    def invocation(self, run: AgentRun) -> Invocation:
        argv = [run.program, "--output-format", "json", "--no-ask-user"]
        if not has_option(run.arguments, "--allow-all-tools", "--allow-all", "--yolo"):
            argv.append("--allow-all-tools")
        if run.resume is not None:
            argv.append(f"--resume={run.resume}")
        elif run.session is not None:
            argv += ["--session-id", run.session]
        env = {"COPILOT_AUTO_UPDATE": "false"}
        if run.telemetry is not None:
            env["COPILOT_OTEL_FILE_EXPORTER_PATH"] = run.telemetry
        return Invocation((*argv, *run.arguments), env)

    def reader(
        self, run: AgentRun, *, now: float, zone: str | None, before: Usage | None
    ) -> CopilotReader:
        named = has_option(run.arguments, "--resume", "--continue")
        return CopilotReader(now, zone, named=named)

    def keeps(self, session: str, env: Mapping[str, str]) -> bool:
        pattern = f"session-state/{session}/events.jsonl"
        return is_name(session) and has_file(env, "COPILOT_HOME", ".copilot", pattern)

    def login(self, program: str, env: Mapping[str, str]) -> Login:
        if any(env.get(name) for name in sorted(self.credentials)):
            return Login(True, "with a token of the environment")
        if env.get("COPILOT_PROVIDER_BASE_URL"):
            return Login(True, "a model of one's own needs no login")
        # Only a request to the service would tell, and a probe makes none.
        return Login(None, "it tells only when it runs")


class CopilotReader:
    """Reads its events; the answer is the last message that asks for no tool."""

    def __init__(self, now: float, zone: str | None, *, named: bool = False) -> None:
        self._now = now
        self._zone = zone
        #: The user has named a session: that one is nobody else's matter.
        self._named = named
        self._text = ""
        self._error = ""

    def line(self, line: bytes) -> Iterable[AgentEvent] | None:
        match type_of(line):
            case None:
                return None
            case "assistant.message":
                return self._message(table(decoded(line).get("data")))
            case "session.error":
                return self._failed(table(decoded(line).get("data")))
            case "assistant.turn_retry":
                return (Progress("is refused, tries again"),)
            case "result":
                return self._result(decoded(line))
            case _:
                return ()

    def telemetry(self, line: bytes) -> Iterator[AgentEvent]:
        if _CALL not in line:
            return  # most of it are metrics, which say the same again
        span = decoded(line)
        told = table(span.get("attributes"))
        if span.get("type") == "span" and told.get("gen_ai.operation.name") == "chat":
            usage = Usage(
                integer(told.get("gen_ai.usage.input_tokens")),
                integer(told.get("gen_ai.usage.output_tokens")),
                integer(told.get("gen_ai.usage.cache_read.input_tokens")),
            )
            yield UsageAdded(usage)

    def end(self, stdout: str, stderr: str) -> Iterator[AgentEvent]:
        noise = f"{stdout}\n{stderr}".strip()
        if not self._named and "No session, task, or name matched" in noise:
            yield SessionGone()
            return
        kind = kind_of_text(noise)
        if kind is not None and not self._error:
            yield LimitHit(kind, noise, reset_time(noise, self._now, self._zone))

    def _message(self, data: dict[str, Any]) -> Iterator[AgentEvent]:
        words = text(data.get("content"))
        tools = tables(data.get("toolRequests"))
        if tools:
            yield Progress(f"uses {text(tools[0].get('name'))}", acted=True)
        elif words:
            self._text = words
            yield Progress(words)

    def _failed(self, data: dict[str, Any]) -> Iterator[AgentEvent]:
        self._error = text(data.get("message")) or "an error"
        status = integer(data.get("statusCode"))
        kind = _ERRORS.get(text(data.get("errorType")))
        if kind in (None, "rate"):
            kind = kind_of_status(status, self._error) or kind
        if kind is not None:
            reset = reset_time(self._error, self._now, self._zone)
            yield LimitHit(kind, self._error, reset)

    def _result(self, event: dict[str, Any]) -> Iterator[AgentEvent]:
        session = text(event.get("sessionId"))
        if session:
            yield SessionKnown(session)
        ok = integer(event.get("exitCode")) == 0
        if ok:
            yield Final(self._text, True)
        else:
            yield Final(self._error or self._text or "an error", False)
