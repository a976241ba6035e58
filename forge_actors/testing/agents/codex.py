"""Plays Codex 0.171."""

from __future__ import annotations

import signal
import time
import uuid
from typing import Any

from forge_actors.testing.agents.acting import (
    LONG,
    Stage,
    complain,
    die_of,
    leave,
    tell,
    work,
)

VERSION = "codex-cli 0.171.0"
USED = {"input_tokens": 120, "cached_input_tokens": 5, "output_tokens": 7}

FAILURES = {
    "rate": "exceeded retry limit, last status: 429 Too Many Requests",
    "overload": "unexpected status 503 Service Unavailable: at capacity",
    "auth": "unexpected status 401 Unauthorized: bad key",
    "budget": "Quota exceeded. Check your plan and billing details.",
    "error": "stream disconnected before completion",
    "error_exit_0": "stream disconnected before completion",
}


def main() -> None:
    day = "sessions/2026/11/30/rollout-2026-11-30T08-00-00-{session}.jsonl"
    stage = Stage(("CODEX_HOME", ".codex"), day)
    if stage.arguments == ["--version"]:
        print(VERSION)
        return
    if stage.arguments == ["login", "status"]:
        logged_in = stage.scene.logged_in
        complain("Logged in using ChatGPT" if logged_in else "Not logged in")
        leave(0 if logged_in else 1)
    signal.signal(signal.SIGINT, lambda *_: leave(1))
    signal.signal(signal.SIGTERM, lambda *_: die_of(signal.SIGTERM))
    # An input that is no terminal is read to its end, whatever the arguments say.
    complain("Reading prompt from stdin...")
    stage.read_prompt()
    _run(stage)


def _run(stage: Stage) -> None:
    thread = _resumed(stage.arguments)
    if thread is not None and not stage.knows(thread):
        complain(
            "Error: thread/resume: thread/resume failed: no rollout found for thread id"
            f" {thread}"
        )
        leave(1)
    before = stage.recall(thread) if thread is not None else dict.fromkeys(USED, 0)
    thread = thread or str(uuid.uuid4())
    stage.remember(thread, **before)
    tell({"type": "thread.started", "thread_id": thread})
    tell({"type": "turn.started"})
    name = stage.scene.name
    if name == "works":
        work()
    if name in FAILURES:
        _fail(FAILURES[name], 0 if name == "error_exit_0" else 1)
    if name == "limit":
        clock = time.strftime("%-I:%M %p", time.localtime(stage.scene.reset))
        _fail(
            "You\u2019ve hit your usage limit. Upgrade to Pro (https://example.invalid)"
            f" or try again at {clock}.",
            1,
        )
    if name == "acts":
        _item("command_execution", command="true", exit_code=0, status="completed")
    if name == "long_line":
        _item("command_execution", command="cat", aggregated_output="x" * LONG)
    stage.before_the_end()
    if name != "empty":
        _item("agent_message", text=stage.answer(_resumed(stage.arguments)))
    # Of the whole thread, not of this run.
    total = {key: before[key] + used for key, used in USED.items()}
    stage.remember(thread, **total)
    usage = {**total, "cache_write_input_tokens": 0, "reasoning_output_tokens": 0}
    tell({"type": "turn.completed", "usage": usage})
    stage.after_the_end()


def _resumed(arguments: list[str]) -> str | None:
    if "resume" not in arguments:
        return None
    return arguments[arguments.index("resume") + 1]


def _fail(why: str, status: int) -> None:
    tell({"type": "error", "message": why})
    tell({"type": "turn.failed", "error": {"message": why}})
    leave(status)


def _item(kind: str, **fields: Any) -> None:
    tell({"type": "item.completed", "item": {"id": "item_0", "type": kind, **fields}})
