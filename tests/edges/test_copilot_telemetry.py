"""What the telemetry of Copilot says, as it was measured with 1.0.102."""

from __future__ import annotations

import json

import pytest

from forge_actors.domain.agents import Usage
from forge_actors.edges.agents.copilot import CopilotReader
from forge_actors.edges.agents.output import AgentOutput

CHAT = {
    "type": "span",
    "name": "chat m",
    "kind": 2,
    "attributes": {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "github",
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 7,
        "github.copilot.cost": 0.0,
    },
}
WHOLE = {
    **CHAT,
    "name": "invoke_agent",
    "attributes": {**CHAT["attributes"], "gen_ai.operation.name": "invoke_agent"},  # type: ignore[dict-item]
}
METRIC = {
    "type": "metric",
    "name": "gen_ai.client.inference.usage.input_tokens",
    "dataPoints": [{"attributes": {"gen_ai.operation.name": "chat"}, "value": 120}],
}


def read(*lines: object, end: bytes = b"\n") -> Usage | None:
    output = AgentOutput("copilot", CopilotReader(0.0, None), None)
    data = b"\n".join(
        line
        if isinstance(line, bytes)
        else json.dumps(line, separators=(",", ":")).encode()
        for line in lines
    )
    output.telemetry(data + end)
    return output.end("").usage


def test_the_calls_count_and_what_repeats_them_does_not() -> None:
    assert read(CHAT, WHOLE, METRIC) == Usage(120, 7)
    assert read(CHAT, METRIC, CHAT, WHOLE) == Usage(240, 14)


def test_a_line_that_was_cut_off_is_none() -> None:
    assert read(CHAT, CHAT, end=b"") == Usage(120, 7)
    assert read(b"") is None


@pytest.mark.parametrize(
    "line",
    [
        b'"chat"',
        b'{"type":"span","attributes":["chat"]}',
        b'{"type":"span","attributes":{"gen_ai.operation.name":"chat"',
        b'\xff"chat"\x00',
        b"[" * 100_000 + b'"chat"',
    ],
)
def test_what_is_no_span_says_nothing(line: bytes) -> None:
    assert read(line, CHAT) == Usage(120, 7)


def test_a_call_whose_tokens_are_no_numbers_is_unknown() -> None:
    odd = {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "120"}
    assert read({**CHAT, "attributes": odd}) == Usage()
