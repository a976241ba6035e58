"""Claude Code, in print mode with its stream of JSON lines.

That its last event is of the subtype `success` says nothing: `is_error` does. Asked to
stop by SIGINT it exits 0 without a last event, by SIGTERM 143, both at once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from forge_actors.domain.agents import (
    Final,
    Invocation,
    LimitHit,
    Login,
    Progress,
    Question,
    SessionGone,
    SessionKnown,
    Usage,
    UsageAdded,
)
from forge_actors.edges.agents.asking import ask
from forge_actors.edges.agents.certificates import CERTIFICATES
from forge_actors.edges.agents.lines import (
    decoded,
    integer,
    number,
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

#: What the program calls the reasons of a refusal in its events.
_ERRORS: dict[str, LimitKind] = {
    "rate_limit": "rate",
    "server_error": "overload",
    "authentication_failed": "auth",
    "billing_error": "budget",
}
_NOTHING = Usage(0, 0, 0, 0.0)

#: The tool with which it asks a person; where nobody is there it gets no answer.
ASKS = "AskUserQuestion"


class Claude:
    """The adapter `claude`."""

    name = "claude"
    provider = "claude"
    program = "claude"
    stop_signal = "SIGTERM"
    grace = 10.0
    ends_after_stop = False
    variables = frozenset(
        {
            "ANTHROPIC_BASE_URL",
            "ANTHROPIC_MODEL",
            "CLAUDE_CODE_MAX_RETRIES",
            "CLAUDE_CONFIG_DIR",
            *CERTIFICATES,
        }
    )
    credentials = frozenset(
        {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}
    )

    def invocation(self, run: AgentRun) -> Invocation:
        argv = [run.program, "-p", "--output-format", "stream-json", "--verbose"]
        if run.resume is not None:
            argv += ["--resume", run.resume]
        elif run.session is not None:
            argv += ["--session-id", run.session]
        modes = ("--permission-mode", "--dangerously-skip-permissions")
        if not has_option(run.arguments, *modes):
            argv += ["--permission-mode", "acceptEdits"]
        return Invocation((*argv, *run.arguments), {"DISABLE_AUTOUPDATER": "1"})

    def reader(
        self, run: AgentRun, *, now: float, zone: str | None, before: Usage | None
    ) -> ClaudeReader:
        named = has_option(run.arguments, "--resume", "-r", "--continue", "-c")
        return ClaudeReader(now, zone, named=named)

    def keeps(self, session: str, env: Mapping[str, str]) -> bool:
        pattern = f"projects/*/{session}.jsonl"
        return is_name(session) and has_file(
            env, "CLAUDE_CONFIG_DIR", ".claude", pattern
        )

    def login(self, program: str, env: Mapping[str, str]) -> Login:
        if any(env.get(name) for name in sorted(self.credentials)):
            return Login(True, "with a key of the environment")
        answer = ask([program, "auth", "status"], env)
        try:
            told = table(json.loads(answer.stdout))
        except (ValueError, RecursionError):
            return Login(None, answer.problem or "it does not say whether it is")
        if told.get("loggedIn") is True:
            return Login(True, f"logged in by {text(told.get('authMethod')) or 'name'}")
        return Login(False, "not logged in: run claude, then /login")


class ClaudeReader:
    """Reads its events; the usage of the last one is what counts."""

    def __init__(self, now: float, zone: str | None, *, named: bool = False) -> None:
        self._now = now
        self._zone = zone
        #: The user has named a session: that one is nobody else's matter.
        self._named = named
        self._told = _NOTHING
        self._message = ""
        self._limit: LimitKind | None = None

    def line(self, line: bytes) -> Iterable[AgentEvent] | None:
        match type_of(line):
            case None:
                return None
            case "assistant":
                return self._assistant(decoded(line))
            case "result":
                return self._result(decoded(line))
            case "system":
                return self._system(decoded(line))
            case "rate_limit_event":
                return self._rate_limit(table(decoded(line).get("rate_limit_info")))
            case _:
                return ()

    def end(self, stdout: str, stderr: str) -> Iterator[AgentEvent]:
        yield from self._refused(None, f"{stdout}\n{stderr}".strip())

    def _system(self, event: dict[str, Any]) -> Iterator[AgentEvent]:
        if event.get("subtype") == "init" and text(event.get("session_id")):
            version = text(event.get("claude_code_version")) or None
            yield SessionKnown(text(event.get("session_id")), version)
        elif event.get("subtype") == "api_retry":
            yield Progress(f"is refused, tries again: {text(event.get('error'))}")

    def _assistant(self, event: dict[str, Any]) -> Iterator[AgentEvent]:
        message = table(event.get("message"))
        blocks = tables(message.get("content"))
        words = " ".join(text(block.get("text")) for block in blocks).strip()
        error = text(event.get("error"))
        if error:
            yield from self._refused(_ERRORS.get(error), words or error)
            return
        tools = [b for b in blocks if text(b.get("type")).endswith("tool_use")]
        asked = [b for b in tools if b.get("name") == ASKS]
        if asked:
            yield Question(_questions(table(asked[0].get("input"))))
        elif tools:
            yield Progress(f"uses {text(tools[0].get('name'))}", acted=True)
        elif words:
            yield Progress(words)
        identity = text(message.get("id"))
        if identity and identity != self._message:
            self._message = identity
            used = _usage_of_message(table(message.get("usage")))
            self._told += used
            yield UsageAdded(used)

    def _result(self, event: dict[str, Any]) -> Iterator[AgentEvent]:
        words = text(event.get("result"))
        subtype = text(event.get("subtype"))
        failed = event.get("is_error") is not False or subtype.startswith("error")
        if text(event.get("session_id")):
            yield SessionKnown(text(event.get("session_id")))
        total = _total_usage(event)
        if total is not None:
            yield UsageAdded(total.since(self._told))
        if failed:
            words = words or _subtype_words(event)
            status = integer(event.get("api_error_status"))
            if not self._named and _knows_no_session(event):
                yield SessionGone()
            elif subtype == "error_max_budget_usd":
                self._limit = "budget"
                yield LimitHit("budget", words, own=True)
            else:
                yield from self._refused(kind_of_status(status, words), words)
        yield Final(words, not failed)

    def _rate_limit(self, info: dict[str, Any]) -> Iterator[AgentEvent]:
        if info.get("status") == "rejected":
            self._limit = "usage"
            why = text(info.get("rateLimitType")) or "usage limit"
            yield LimitHit("usage", why, number(info.get("resetsAt")))

    def _refused(self, kind: LimitKind | None, words: str) -> Iterator[AgentEvent]:
        said = kind_of_text(words)
        # The words tell a spent account from a burst; an event has told its moment.
        if kind is None or (kind == "rate" and said == "usage"):
            kind = said
        if kind is None or self._limit == "usage":
            return
        self._limit = kind
        yield LimitHit(kind, words, reset_time(words, self._now, self._zone))


def _questions(asked: dict[str, Any]) -> str:
    """What it asks, and the answers that it offers."""
    lines = []
    for each in tables(asked.get("questions")):
        labels = [text(option.get("label")) for option in tables(each.get("options"))]
        offered = f" ({' / '.join(labels)})" if labels else ""
        lines.append(text(each.get("question")) + offered)
    return "\n".join(lines) or "it asks something"


def _usage_of_message(usage: dict[str, Any]) -> Usage:
    """Of one message; what it costs is told at the end only."""
    return Usage(_read(usage), integer(usage.get("output_tokens")) or 0, _cached(usage))


def _total_usage(event: dict[str, Any]) -> Usage | None:
    """Of the whole attempt: that of its models, which is right also where it ended
    early."""
    models = [table(model) for model in table(event.get("modelUsage")).values()]
    cost = number(event.get("total_cost_usd"))
    cost = None if cost is None else round(cost, 6)
    if models:
        written = _total(models, "cacheCreationInputTokens")
        cached = _total(models, "cacheReadInputTokens")
        fresh = _total(models, "inputTokens")
        out = _total(models, "outputTokens")
        return Usage(fresh + written + cached, out, cached, cost)
    usage = table(event.get("usage"))
    if not usage and cost is None:
        return None
    out = integer(usage.get("output_tokens")) or 0
    return Usage(_read(usage), out, _cached(usage), cost)


def _read(usage: dict[str, Any]) -> int:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(integer(usage.get(name)) or 0 for name in names)


def _cached(usage: dict[str, Any]) -> int:
    return integer(usage.get("cache_read_input_tokens")) or 0


def _total(models: list[dict[str, Any]], name: str) -> int:
    return sum(integer(model.get(name)) or 0 for model in models)


def _knows_no_session(event: dict[str, Any]) -> bool:
    """Whether it ended before its first turn for want of the session."""
    early = event.get("subtype") == "error_during_execution"
    if not early or integer(event.get("num_turns")) != 0:
        return False
    return not event.get("errors") or "No conversation found" in _subtype_words(event)


def _subtype_words(event: dict[str, Any]) -> str:
    errors = event.get("errors")
    told = errors[0] if isinstance(errors, list) and errors else None
    return text(told) or text(event.get("subtype")).replace("_", " ") or "an error"
