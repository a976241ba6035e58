"""Output is read as it comes, in pieces of any size, in bounded memory."""

from __future__ import annotations

import json
import tracemalloc
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.agents import AgentRun, Usage
from forge_actors.edges.agents.finding import adapter
from forge_actors.edges.agents.output import MAX_LINE, MAX_NOISE, AgentOutput

if TYPE_CHECKING:
    from forge_actors.domain.agents import AgentReport

INIT = b'{"type":"system","subtype":"init","session_id":"s-1"}\n'
SAID = (
    b'{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"x"}]}}'
    b"\n"
)
RESULT = (
    b'{"type":"result","subtype":"success","is_error":false,"result":"\xc3\xa9nd"}\n'
)
FIELDS = (
    *("message", "content", "usage", "error", "item", "data", "result", "session_id"),
    *(
        "is_error",
        "modelUsage",
        "rate_limit_info",
        "toolRequests",
        "text",
        "id",
        "type",
    ),
)
KINDS = (
    *("assistant", "result", "system", "rate_limit_event", "thread.started", "error"),
    *("item.completed", "turn.completed", "turn.failed", "assistant.message"),
    "session.error",
)


def output(name: str = "claude", before: Usage | None = None) -> AgentOutput:
    reader = adapter(name).reader(AgentRun(name), now=0.0, zone="UTC", before=before)
    return AgentOutput(name, reader, None)


def read(data: bytes, *cuts: int) -> AgentReport:
    made = output()
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in pairwise(places):
        made.feed(data[start:end])
    assert made.offset == len(data)
    return made.end("")


@given(st.lists(st.integers(0, 10_000), max_size=20))
def test_where_the_pieces_are_cut_does_not_matter(cuts: list[int]) -> None:
    data = INIT + b"no event\n" + SAID + b"\n\n" + b"\xff\xfe{]\n" + RESULT
    told = read(data, *cuts)
    assert told == read(data)
    assert (told.session, told.ok, told.text) == ("s-1", True, "\u00e9nd")
    assert told.noise == "no event\n\ufffd\ufffd{]\n"


@given(st.integers(0, 10_000))
def test_killed_at_any_byte_the_session_is_known_if_it_was_told(cut: int) -> None:
    data = INIT + SAID + RESULT
    cut %= len(data) + 1
    told = read(data[:cut])
    # A line is whole also without its end.
    assert told.session == ("s-1" if cut >= len(INIT) - 1 else None)
    assert told.ok is (True if cut >= len(data) - 1 else None)


@given(st.binary(max_size=400))
@pytest.mark.parametrize("name", ["claude", "codex", "copilot", "command"])
def test_no_output_makes_a_reader_fail(name: str, data: bytes) -> None:
    made = output(name)
    made.feed(data)
    made.end("")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=5)
        ),
    ),
    st.sampled_from(KINDS),
)
@pytest.mark.parametrize("name", ["claude", "codex", "copilot"])
def test_an_event_that_is_not_as_it_should_be_is_taken_leniently(
    name: str, fields: object, kind: str
) -> None:
    made = output(name)
    event = fields if isinstance(fields, dict) else {"message": fields}
    made.feed(json.dumps({**event, "type": kind}).encode() + b"\n")
    made.end("")


def test_a_line_that_is_too_long_is_left_out_and_the_next_is_read() -> None:
    made = output()
    made.feed(INIT + b'{"type":"user","x":"')
    for _ in range(MAX_LINE // 65_536 + 2):
        made.feed(b"x" * 65_536)
    made.feed(b'"}\n' + RESULT)
    told = made.end("")
    assert told.ok
    assert told.unread > MAX_LINE


def test_what_was_not_kept_in_the_middle_does_not_hide_the_end() -> None:
    made = output()
    made.feed(INIT + b'{"type":"assistant","mes')
    made.feed(b'"is_error":false}}\n' + RESULT, missing=1000)
    told = made.end("")
    assert told.session == "s-1"
    assert told.ok
    assert told.unread == 1000 + len(b'"is_error":false}}')
    assert made.offset == len(INIT) + 24 + 1000 + 19 + len(RESULT)


def test_memory_does_not_grow_with_the_output() -> None:
    made = output()
    piece = (SAID + b"noise\n") * 500
    made.feed(INIT + piece)
    tracemalloc.start()
    for _ in range(200):
        made.feed(piece)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 64 * 1024 + MAX_NOISE


def test_usage_of_a_thread_counts_from_where_it_was_resumed() -> None:
    line = (
        b'{"type":"turn.completed","usage":{"input_tokens":240,'
        b'"cached_input_tokens":10,"output_tokens":14}}\n'
    )
    made = output("codex", Usage(120, 7, 5))
    made.feed(line)
    assert made.end("").usage == Usage(120, 7, 5)


def test_usage_of_a_resumed_thread_whose_past_is_unknown_is_unknown() -> None:
    run = AgentRun("codex", resume="t-1")
    reader = adapter("codex").reader(run, now=0.0, zone=None, before=None)
    made = AgentOutput("codex", reader, "t-1")
    made.feed(b'{"type":"turn.completed","usage":{"output_tokens":14}}\n')
    assert made.end("").usage == Usage()
