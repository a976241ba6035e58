"""What agent programs print while they work."""

from __future__ import annotations

import json
import logging
import math
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from forge_actors.domain.agents import AgentReport, AgentRun, Usage
from forge_actors.domain.epic.asking import outcome_of
from forge_actors.edges.agents.claude import Claude
from forge_actors.edges.agents.codex import Codex
from forge_actors.edges.agents.command import Command
from forge_actors.edges.agents.copilot import Copilot
from forge_actors.edges.agents.output import AgentOutput
from forge_actors.edges.agents.reset_times import PASSED, reset_time
from fuzzing.target import Broken, Target, in_pieces, pieces_of, same, text_of

if TYPE_CHECKING:
    from forge_actors.domain.agents import AgentAdapter

#: Novembers: one of 2026, and one of a year that had a 29th of February.
NOW, _LEAP_YEAR = 1_795_000_000.0, 1_858_100_000.0
_BEFORE = Usage(100, 50, 20, 0.5)
_RUN = AgentRun("agent")


class _Complaints(logging.Handler):
    """Keeps what is said of adapters that failed."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def stream(adapter: AgentAdapter, data: bytes) -> None:
    pieces, whole = pieces_of(data)
    report = _report(adapter, [whole])
    same(_report(adapter, pieces), report, "in pieces")
    try:
        again = msgspec.json.decode(msgspec.json.encode(report), type=AgentReport)
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        raise Broken(f"{report!r} cannot be kept: {error}") from None
    same(again, report, "kept and read again")
    if len(report.text) > 20_000 or len(report.noise) > 20_000:
        raise Broken("the report has no bounds")


def _report(adapter: AgentAdapter, pieces: list[bytes]) -> AgentReport:
    complaints = _Complaints()
    log = logging.getLogger(AgentOutput.__module__)
    log.addHandler(complaints)
    propagated, log.propagate = log.propagate, False
    try:
        reader = adapter.reader(_RUN, now=NOW, zone="Europe/Prague", before=_BEFORE)
        output = AgentOutput(adapter.name, reader, None)
        for piece in pieces:
            output.feed(piece)
        output.telemetry(b"".join(pieces))
        report = output.end("stderr")
    finally:
        log.propagate = propagated
        log.removeHandler(complaints)
    if complaints.said:
        raise Broken(f"an adapter of ours failed: {complaints.said}")
    return report


def reset_times(data: bytes) -> None:
    text = text_of(data)
    for now, zone in ((NOW, "America/New_York"), (_LEAP_YEAR, "UTC")):
        moment = reset_time(text, now, zone)
        if moment is not None and not now - PASSED <= moment < math.inf:
            raise Broken(f"{text!r} states {moment}")


def outcomes(data: bytes) -> None:
    text = text_of(data)
    found = outcome_of({}, text)
    if found is not None:
        same(
            outcome_of({"EPIC_OUTCOME": found.kind}, found.text), found, "as an output"
        )


def _lines(*events: object) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


_CLAUDE = _lines(
    {"type": "system", "subtype": "init", "session_id": "s-1"},
    {
        "type": "assistant",
        "message": {
            "id": "m1",
            "content": [{"type": "text", "text": "I look"}],
            "usage": {"input_tokens": 5, "output_tokens": 7},
        },
    },
    {
        "type": "assistant",
        "message": {
            "content": [
                {
                    "type": "tool_use",
                    "name": "AskUserQuestion",
                    "input": {"questions": [{"question": "?", "options": [{}]}]},
                }
            ]
        },
    },
    {
        "type": "rate_limit_event",
        "rate_limit_info": {"status": "rejected", "resetsAt": 1},
    },
    {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "result": "done",
        "total_cost_usd": 0.25,
        "modelUsage": {"m": {"inputTokens": 1, "outputTokens": 2}},
    },
)
_CODEX = _lines(
    {"type": "thread.started", "thread_id": "t-1"},
    {"type": "item.completed", "item": {"type": "agent_message", "text": "hi"}},
    {"type": "item.completed", "item": {"type": "command_execution"}},
    {"type": "error", "message": "usage limit, try again in 2 hours 3 minutes"},
    {"type": "turn.completed", "usage": {"input_tokens": 500, "output_tokens": 70}},
    {"type": "turn.failed", "error": {"message": "429"}},
)
_CHAT = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 9}
_COPILOT = _lines(
    {"type": "assistant.message", "data": {"content": "x", "toolRequests": [{}]}},
    {"type": "session.error", "data": {"message": "no", "statusCode": 429}},
    {"type": "span", "attributes": _CHAT},
    {"type": "result", "sessionId": "c-1", "exitCode": 0},
)
#: What no program prints, but could.
_ODD = (
    b'{"type":"result","total_cost_usd":1e308,"usage":{"input_tokens":'
    + b"9" * 40
    + b"}}\n",
    b'{"type":"turn.completed","usage":{"input_tokens":18446744073709551616}}\n',
    b'{"type":"result","x":' + b"[" * 2000 + b"\n",
    b'{"type":"assistant","message":{"content":"\xff\xfe\\ud800"}}\nnot json\n',
)
_WORDS = (
    *(b'"type":"', b'"result"', b'"usage":{', b'"input_tokens":', b"null", b"1e999"),
    *(b'"content":[', b'"message":', b"\\ud800", b"18446744073709551616", b"true"),
)

TARGETS = (
    *(
        Target(
            adapter.name,
            "a stream means the same in pieces, no event makes its reader fail, and"
            " the report can be kept",
            partial(stream, adapter),
            in_pieces(seed, *_ODD),
            _WORDS,
        )
        for adapter, seed in (
            (Claude(), _CLAUDE),
            (Codex(), _CODEX),
            (Copilot(), _COPILOT),
            (Command(), b"some words\nand an answer"),
        )
    ),
    Target(
        "reset-times",
        "the end of a limit is a moment that is not long past, or none",
        reset_times,
        (
            *(b"limit reached|1795003600", b"try again in 2 days 17 hours and 5 min"),
            *(b"resets at 3pm (Europe/Prague)", b"available Feb 29, 2028 at 23:59"),
            *(b"resets jan 1 0001 at 0:00", b"until dec 31 9999 at 23:59 (Asia/Tokyo)"),
        ),
        (b"resets ", b"in ", b" days", b" (", b"/", b"pm", b"|", b"99999999999"),
    ),
    Target(
        "outcomes",
        "the end of an answer says the same as an output that a program writes",
        outcomes,
        (b"all done\n\nEPIC_OUTCOME: passed\n", b"- **EPIC_OUTCOME**: `findings`"),
        (b"EPIC_OUTCOME", b"passed", b"blocked"),
    ),
)
