"""Plays Claude Code 2.1."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
import uuid
from typing import Any

from forge_actors.testing.agents.acting import LONG, Stage, complain, leave, tell, work

VERSION = "2.1.197"
USED = {"input_tokens": 120, "cache_read_input_tokens": 5, "output_tokens": 7}
NOT_USED = dict.fromkeys(USED, 0)
COST = 0.000777

#: Of each scene that fails: the HTTP status, the error of the message, the words.
REFUSALS = {
    "rate": (429, "rate_limit", "API Error: Request rejected (429) · slow down"),
    "overload": (529, "server_error", "API Error: 529 Overloaded. Try again later."),
    "auth": (401, "authentication_failed", "Failed to authenticate. API Error: 401"),
    "error": (400, "invalid_request", "API Error: 400 the request makes no sense"),
    "error_exit_0": (500, "unknown", "API Error: 500 it broke"),
}


def main() -> None:
    slug = re.sub(r"[^0-9A-Za-z]", "-", os.getcwd())
    home = ("CLAUDE_CONFIG_DIR", ".claude")
    stage = Stage(home, f"projects/{slug}/{{session}}.jsonl")
    if stage.arguments == ["--version"]:
        print(f"{VERSION} (Claude Code)")
        return
    if stage.arguments == ["auth", "status"]:
        logged_in = stage.scene.logged_in
        tell(
            {"loggedIn": logged_in, "authMethod": "claude.ai" if logged_in else "none"}
        )
        leave(0 if logged_in else 1)
    signal.signal(signal.SIGINT, lambda *_: leave(0))
    signal.signal(signal.SIGTERM, lambda *_: leave(143))
    _run(stage)


def _run(stage: Stage) -> None:
    streams = stage.option("--output-format") == "stream-json"
    if streams and "--verbose" not in stage.arguments:
        complain(
            "Error: When using --print, --output-format=stream-json requires --verbose"
        )
        leave(1)
    if os.environ.get("CLAUDECODE"):
        complain("Error: Claude Code cannot be launched inside another one.")
        leave(1)
    session = stage.option("--session-id")
    resumed = stage.option("--resume")
    if session is not None and stage.knows(session):
        complain(f"Error: Session ID {session} is already in use.")
        leave(1)
    stage.read_prompt()
    if resumed is not None and not stage.knows(resumed):
        complain(f"No conversation found with session ID: {resumed}")
        _result(resumed, "error_during_execution", "", is_error=True, turns=0)
        leave(1)
    session = resumed or session or str(uuid.uuid4())
    stage.remember(session)
    tell(
        {
            "type": "system",
            "subtype": "init",
            "cwd": os.getcwd(),
            "session_id": session,
            "tools": ["Bash", "Edit"],
            "model": "claude-opus-4-8",
            "permissionMode": stage.option("--permission-mode") or "default",
            "claude_code_version": VERSION,
            "uuid": str(uuid.uuid4()),
        }
    )
    if stage.scene.name == "works":
        _assistant(session, [{"type": "text", "text": "I begin."}])
        work()
    _play(stage, session)


def _play(stage: Stage, session: str) -> None:
    name, words = stage.scene.name, stage.answer(stage.option("--resume"))
    if name in REFUSALS:
        status, error, words = REFUSALS[name]
        content = [{"type": "text", "text": words}]
        _assistant(session, content, model="<synthetic>", error=error)
        _result(session, "success", words, is_error=True, status=status, used=NOT_USED)
        leave(0 if name == "error_exit_0" else 1)
    if name == "limit":
        _limit(stage, session)
    if name == "budget":
        _assistant(session, [{"type": "text", "text": "I begin."}])
        _result(session, "error_max_budget_usd", None, is_error=True, top=NOT_USED)
        leave(1)
    if name == "acts":
        call = {"type": "tool_use", "name": "Bash", "input": {"command": "true"}}
        _assistant(session, [call])
    if name == "asks" and stage.option("--resume") is None:
        options = [{"label": "yes"}, {"label": "no"}]
        asked = {"questions": [{"question": words, "options": options}]}
        call = {"type": "tool_use", "name": "AskUserQuestion", "input": asked}
        _assistant(session, [call])
    if name == "long_line":
        answer = [{"type": "tool_result", "content": "x" * LONG}]
        tell({"type": "user", "message": {"content": answer}, "session_id": session})
    stage.before_the_end()
    if name == "empty":
        words = ""
    else:
        _assistant(session, [{"type": "text", "text": words}])
    _result(session, "success", words, is_error=False)
    stage.after_the_end()


def _limit(stage: Stage, session: str) -> None:
    reset = stage.scene.reset
    clock = time.strftime("%-I:%M%p", time.gmtime(reset)).lower()
    words = f"You've hit your limit · resets {clock} (UTC)"
    if "old text" not in stage.prompt:
        told = {"status": "rejected", "resetsAt": reset, "rateLimitType": "five_hour"}
        tell(
            {"type": "rate_limit_event", "rate_limit_info": told, "session_id": session}
        )
    content = [{"type": "text", "text": words}]
    _assistant(session, content, model="<synthetic>", error="rate_limit")
    _result(session, "success", words, is_error=True, status=429, used=NOT_USED)
    leave(1)


def _assistant(
    session: str,
    content: list[dict[str, Any]],
    *,
    model: str = "claude-opus-4-8",
    error: str | None = None,
) -> None:
    used = NOT_USED if error else {**USED, "output_tokens": 1}
    event: dict[str, Any] = {
        "type": "assistant",
        "message": {
            "id": f"msg_{uuid.uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": content,
            "usage": used,
        },
        "parent_tool_use_id": None,
        "session_id": session,
        "uuid": str(uuid.uuid4()),
    }
    tell(event | ({"error": error} if error else {}))


def _result(
    session: str,
    subtype: str,
    words: str | None,
    *,
    is_error: bool,
    status: int | None = None,
    turns: int = 1,
    used: dict[str, int] = USED,
    top: dict[str, int] | None = None,
) -> None:
    models = {
        "claude-opus-4-8": {
            "inputTokens": used["input_tokens"],
            "outputTokens": used["output_tokens"],
            "cacheReadInputTokens": used["cache_read_input_tokens"],
            "cacheCreationInputTokens": 0,
            "costUSD": COST,
        }
    }
    spent = used is USED and turns > 0
    event: dict[str, Any] = {
        "type": "result",
        "subtype": subtype,
        "is_error": is_error,
        "api_error_status": status,
        "num_turns": turns,
        "session_id": session,
        "total_cost_usd": COST if spent else 0,
        "usage": {**(top or used), "cache_creation_input_tokens": 0},
        "modelUsage": models if spent else {},
        "permission_denials": [],
        "uuid": str(uuid.uuid4()),
    }
    tell(event if words is None else event | {"result": words})
    sys.stdout.flush()
