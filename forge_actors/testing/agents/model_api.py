"""A model service on the loopback that answers as it is told, for the real programs.

It speaks as much of three protocols as they need for one short answer: the messages of
Anthropic, and the responses and the chat completions of OpenAI.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Mode = Literal["success", "rate", "limit", "auth", "works", "tool"]

ANSWER = "done by the stub"
INPUT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS = 120, 5, 7
#: Seconds for which a request is held at most, should nobody let it go.
HELD_SECONDS = 60.0


class ModelApi:
    """What it answers from now on, and what it was asked."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.mode: Mode = "success"
        #: When the limit of `limit` ends, in seconds since 1970.
        self.resets_at = 0
        #: The tool that `tool` calls, by the end of its name, and with what; what it
        #: answered.
        self.tool: tuple[str, dict[str, Any]] = ("", {})
        self.tool_answers: list[Any] = []
        #: A request is held.
        self.asked = threading.Event()
        self.let_go = threading.Event()

    def play(self, mode: Mode) -> None:
        """Answer so; with `works` a request is held until `let_go`, and with `tool` an
        agent is told to call one first."""
        self.mode = mode
        self.asked.clear()
        self.let_go.clear()


@contextmanager
def serving() -> Iterator[ModelApi]:
    """Serve while the block lasts."""
    server = _Server(("127.0.0.1", 0), _Handler)
    api = ModelApi(server.server_address[1])
    server.api = api  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    """Says nothing of those who were killed while it answered."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nobody reads it."""

    @property
    def api(self) -> ModelApi:
        api: ModelApi = self.server.api  # type: ignore[attr-defined]
        return api

    def do_GET(self) -> None:
        self._json(200, {"data": [], "models": [], "has_more": False})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._json(200, {"input_tokens": INPUT_TOKENS})
            return
        api, mode = self.api, self.api.mode
        if mode == "works":
            api.asked.set()
            api.let_go.wait(HELD_SECONDS)
        # The other end may have been killed meanwhile.
        with suppress(ConnectionError):
            if mode == "tool" and (call := self._tool_call(path, body)) is not None:
                self._stream((event["type"], event) for event in call)
            elif mode in ("success", "works", "tool"):
                self._answer(path)
            else:
                self._refuse(mode)

    def _tool_call(self, path: str, body: bytes) -> list[dict[str, Any]] | None:
        """A call of the tool, unless it was answered or is not offered."""
        asked, (ending, arguments) = json.loads(body), self.api.tool
        find, told = (_messages_tools, _messages_answers)
        if path.endswith("/responses"):
            find, told = (_responses_tools, _responses_answers)
        self.api.tool_answers += told(asked)
        offered = find(asked)
        named = next((each for each in offered if each.endswith(ending)), None)
        if named is None or self.api.tool_answers:
            return None
        call = {"input": arguments, **offered[named]}
        make = _responses if path.endswith("/responses") else _messages
        return list(make(call))

    def _refuse(self, mode: Mode) -> None:
        if mode == "auth":
            error = {"type": "authentication_error", "message": "bad key"}
            self._json(401, {"type": "error", "error": error})
            return
        limit: dict[str, Any] = {"type": "rate_limit_error", "message": "slow down"}
        if mode == "limit":
            limit = {"type": "usage_limit_reached", "plan_type": "pro", "message": "m"}
            limit |= {"resets_at": self.api.resets_at}
        self._json(429, {"type": "error", "error": limit})

    def _answer(self, path: str) -> None:
        if path.endswith("/messages"):
            self._stream((event["type"], event) for event in _messages())
        elif path.endswith("/responses"):
            self._stream((event["type"], event) for event in _responses())
        else:
            self._stream((None, event) for event in _completions())

    def _stream(self, events: Iterable[tuple[str | None, dict[str, Any]]]) -> None:
        parts = []
        for kind, event in events:
            head = "" if kind is None else f"event: {kind}\n"
            parts.append(f"{head}data: {json.dumps(event)}\n\n")
        if self.path.endswith("/completions"):
            parts.append("data: [DONE]\n\n")
        self._send(200, "text/event-stream", "".join(parts).encode())

    def _json(self, status: int, value: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(value).encode())

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _messages(call: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """A short answer; or one call of a tool."""
    usage = {
        "input_tokens": INPUT_TOKENS,
        "cache_read_input_tokens": CACHED_TOKENS,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    message: dict[str, Any] = {"id": f"msg_{time.monotonic_ns()}", "type": "message"}
    message |= {"role": "assistant", "content": [], "stop_reason": None}
    message |= {"stop_sequence": None, "usage": usage, "model": "m"}
    yield {"type": "message_start", "message": message}
    block: dict[str, Any] = {"type": "text", "text": ""}
    delta = {"type": "text_delta", "text": ANSWER}
    if call is not None:
        block = {"type": "tool_use", "id": "toolu_1", "name": call["name"], "input": {}}
        part = json.dumps(call["input"])
        delta = {"type": "input_json_delta", "partial_json": part}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if call is None else "tool_use"
    end: dict[str, Any] = {"stop_reason": reason, "stop_sequence": None}
    used = {"output_tokens": OUTPUT_TOKENS}
    yield {"type": "message_delta", "delta": end, "usage": used}
    yield {"type": "message_stop"}


def _messages_tools(asked: dict[str, Any]) -> dict[str, dict[str, str]]:
    """The tools that are offered, by their whole names, as a call names them."""
    return {each["name"]: {"name": each["name"]} for each in asked.get("tools", [])}


def _messages_answers(asked: dict[str, Any]) -> list[Any]:
    """What tools have answered."""
    blocks = [
        block
        for message in asked["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
    ]
    return [each["content"] for each in blocks if each["type"] == "tool_result"]


def _responses_tools(asked: dict[str, Any]) -> dict[str, dict[str, str]]:
    return {
        f"{space['name']}__{each['name']}": {
            "name": each["name"],
            "namespace": space["name"],
        }
        for space in asked.get("tools", [])
        if space["type"] == "namespace"
        for each in space["tools"]
    }


def _responses_answers(asked: dict[str, Any]) -> list[Any]:
    kind = "function_call_output"
    return [each["output"] for each in asked["input"] if each["type"] == kind]


def _responses(call: dict[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """A short answer; or one call of a tool."""
    said = [{"type": "output_text", "text": ANSWER}]
    item = {"type": "message", "role": "assistant", "id": "m1", "content": said}
    if call is not None:
        arguments = json.dumps(call["input"])
        item = {"type": "function_call", "id": "f1", "call_id": "c1", **call}
        del item["input"]
        item["arguments"] = arguments
    usage = {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": CACHED_TOKENS},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    yield {"type": "response.created", "response": {"id": "r1"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": "r1", "usage": usage}}


def _completions() -> Iterator[dict[str, Any]]:
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = {"role": "assistant", "content": ANSWER}
    yield {**base, "choices": [{"index": 0, "delta": said, "finish_reason": None}]}
    usage = {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    yield {**base, "choices": [end], "usage": usage}
