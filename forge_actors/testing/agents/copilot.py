"""Plays the command line of GitHub Copilot 1.0."""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from typing import Any, NoReturn

from forge_actors.testing.agents.acting import (
    LONG,
    Stage,
    complain,
    die_of,
    leave,
    tell,
)

VERSION = "GitHub Copilot CLI 1.0.102."
TRIES = 5
STOPS = {signal.SIGINT, signal.SIGTERM}

#: Of each scene that fails: the type of the error, the HTTP status, the words.
FAILURES = {
    "rate": ("rate_limit", 429, "Failed to get response; retried 5 times: 429 slow"),
    "overload": ("query", 503, "Failed to get response; retried 5 times: 503"),
    "limit": ("quota", 402, "402 You have no quota"),
    "budget": ("query", 402, "the spending limit of your organization is reached"),
    "error": ("query", 400, "400 the request makes no sense"),
    "error_exit_0": ("query", 500, "500 it broke"),
}


def main() -> None:
    stage = Stage(("COPILOT_HOME", ".copilot"), "session-state/{session}/events.jsonl")
    if stage.arguments == ["--version"]:
        print(VERSION)
        return
    stage.read_prompt()
    if stage.scene.name == "auth" or not stage.scene.logged_in:
        # No event, although it was asked for them.
        complain("Error: No authentication information found.\n\nUse /login.")
        leave(1)
    if stage.scene.name == "works":
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    session = stage.option("--session-id", "--resume") or str(uuid.uuid4())
    if stage.option("--resume") is not None and not stage.knows(session):
        complain(f"Error: No session, task, or name matched '{session}'")
        leave(1)
    stage.remember(session)
    _event("session.tools_updated", model="m")
    _event("user.message", content=stage.prompt)
    _event("assistant.turn_start", turnId="0")
    _event("model.call_start", turnId="0", model="m")
    name = stage.scene.name
    if name == "works":
        _call_that_lasts(stage, session)
    if name in FAILURES:
        _fail(stage, session)
    if name == "acts":
        _message("", [{"name": "bash", "arguments": {"command": "true"}}])
    if name == "long_line":
        _event("tool.execution_complete", result={"content": "x" * LONG})
    stage.before_the_end()
    _called()
    if name != "empty":
        _message(stage.answer(stage.option("--resume")), [])
    _event("assistant.idle")
    _result(session, 0)
    stage.after_the_end()


def _call_that_lasts(stage: Stage, session: str) -> NoReturn:
    """Hold a signal back until the call has returned, end well, and die of it."""
    stopped = signal.sigwait(STOPS)
    time.sleep(stage.scene.wait)
    _message(stage.scene.text, [])
    _result(session, 0)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    die_of(stopped)


def _fail(stage: Stage, session: str) -> NoReturn:
    kind, status, words = FAILURES[stage.scene.name]
    if status in (429, 503):
        for _ in range(TRIES):
            _event("model.call_failure", statusCode=status, errorMessage=words)
            _event("assistant.turn_retry", reason=kind)
            time.sleep(stage.scene.wait / TRIES)
    _event("session.error", errorType=kind, message=words, statusCode=status)
    _event("assistant.idle")
    exits = 0 if stage.scene.name == "error_exit_0" else 1
    _result(session, 1)
    leave(exits)


def _called() -> None:
    """What its telemetry says of the call of a model: a span, the same again in that of
    the whole, and metrics."""
    file = os.environ.get("COPILOT_OTEL_FILE_EXPORTER_PATH")
    if not file:
        return
    used = {"gen_ai.usage.input_tokens": 120, "gen_ai.usage.output_tokens": 7}
    cost = {"github.copilot.cost": 1.0}
    with open(file, "a", encoding="utf-8") as stream:
        for kind in ("chat", "invoke_agent"):
            attributes = {"gen_ai.operation.name": kind, **used, **cost}
            span = {"type": "span", "name": f"{kind} m", "attributes": attributes}
            stream.write(f"{json.dumps(span)}\n")
        point = {"attributes": {"gen_ai.operation.name": "chat"}, "value": 120}
        name = "gen_ai.client.inference.usage.input_tokens"
        metric = {"type": "metric", "name": name, "dataPoints": [point]}
        stream.write(f"{json.dumps(metric)}\n")


def _message(words: str, tools: list[dict[str, Any]]) -> None:
    _event("assistant.message", messageId="m1", content=words, toolRequests=tools)


def _event(kind: str, **data: Any) -> None:
    tell({"type": kind, "data": data, "id": str(uuid.uuid4()), "parentId": None})


def _result(session: str, status: int) -> None:
    tell(
        {
            "type": "result",
            "sessionId": session,
            "exitCode": status,
            "usage": {"premiumRequests": 0, "totalApiDurationMs": 19},
        }
    )
