"""How fast the output of an agent is read, by CPU time, and in how much memory."""

from __future__ import annotations

import json
import time
import tracemalloc
from typing import TYPE_CHECKING

from benchmarks.rows import Sample
from forge_actors.domain.agents import AgentRun
from forge_actors.edges.agents.finding import adapter
from forge_actors.edges.agents.output import AgentOutput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.rows import Bench

MIB = 1 << 20
PIECE = 256 * 1024
#: Bytes of output that are looked at for memory, which tracing makes slow.
TRACED = 4 * MIB


def measure(bench: Bench) -> Iterable[Sample]:
    """The slowest of the adapters, on lines as each prints them."""
    rates = {
        name: _rate(name, bench.output_bytes) for name in ("claude", "codex", "copilot")
    }
    slowest = min(rates, key=lambda name: rates[name])
    each = ", ".join(f"{name} {rate:.0f}" for name, rate in rates.items())
    size = f"{bench.output_bytes // MIB} MiB each"
    yield Sample("agent-output", rates[slowest], "MB/s", f"{size}: {each}")
    note = f"above what it began with, after {TRACED // MIB} MiB"
    yield Sample("agent-output-memory", _memory("claude") / MIB, "MiB", note)


def _rate(name: str, size: int) -> float:
    piece = _piece(name)
    output = _output(name)
    begun = time.process_time()
    for _ in range(max(1, size // len(piece))):
        output.feed(piece)
    return output.offset / 1e6 / (time.process_time() - begun)


def _memory(name: str) -> int:
    piece = _piece(name)
    output = _output(name)
    output.feed(piece)
    tracemalloc.start()
    for _ in range(TRACED // len(piece)):
        output.feed(piece)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def _output(name: str) -> AgentOutput:
    run = AgentRun(name)
    reader = adapter(name).reader(run, now=0.0, zone="UTC", before=None)
    return AgentOutput(name, reader, None)


def _piece(name: str) -> bytes:
    """Many lines of some hundred bytes, cut where they happen to be."""
    lines = "".join(json.dumps(event) + "\n" for event in _events(name)).encode()
    return (lines * (PIECE // len(lines) + 2))[:PIECE]


def _events(name: str) -> Iterable[dict[str, object]]:
    words = "The tests of the parser pass; next I look at what the writer does. " * 3
    match name:
        case "claude":
            said = [{"type": "text", "text": words}]
            usage = {"input_tokens": 3, "output_tokens": 1}
            message = {"id": "msg_01", "model": "m", "content": said, "usage": usage}
            yield {"type": "assistant", "message": message, "session_id": "s" * 36}
            call = {"type": "tool_use", "name": "Bash", "input": {"command": "make"}}
            message = {"id": "msg_02", "model": "m", "content": [call], "usage": usage}
            yield {"type": "assistant", "message": message, "session_id": "s" * 36}
            done = [{"type": "tool_result", "content": words}]
            answer = {"role": "user", "content": done}
            yield {"type": "user", "message": answer, "session_id": "s" * 36}
        case "codex":
            item: dict[str, object] = {"id": "item_1", "type": "agent_message"}
            yield {"type": "item.completed", "item": {**item, "text": words}}
            item = {"id": "item_2", "type": "command_execution", "command": "make"}
            yield {"type": "item.started", "item": item}
            item = {**item, "aggregated_output": words, "exit_code": 0}
            yield {"type": "item.completed", "item": item}
        case _:
            delta = {"messageId": "m" * 36, "deltaContent": "some words "}
            yield {"type": "assistant.message_delta", "data": delta, "id": "i" * 36}
            whole = {"messageId": "m" * 36, "content": words, "toolRequests": []}
            yield {"type": "assistant.message", "data": whole, "id": "i" * 36}
