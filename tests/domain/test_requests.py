"""Requests: arguments as bytes, and the errors for input of the wrong shape."""

from __future__ import annotations

import json
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.harmless import clean
from forge_actors.domain.policies import PolicyRequest
from forge_actors.domain.requests import (
    MAX_ARGUMENT_BYTES,
    MAX_ARGV,
    JobQuery,
    JobRequest,
    LogChunk,
    convert,
    decode_argv,
    encode_argv,
    nearest,
)
from forge_actors.domain.selection import Selection

ARGUMENT = st.binary(max_size=40).map(lambda raw: raw.replace(b"\0", b"0"))
Encoded = list[str | dict[str, str]]


@given(
    st.binary(min_size=1, max_size=9).map(lambda b: b.replace(b"\0", b"0")), ARGUMENT
)
def test_any_bytes_survive_the_way_through_json(first: bytes, second: bytes) -> None:
    argv = [first.decode("utf-8", "surrogateescape"), os.fsdecode(second)]
    carried = json.loads(json.dumps(encode_argv(argv)).encode())
    decoded = decode_argv(carried, field="argv")
    assert [part.encode("utf-8", "surrogateescape") for part in decoded] == [
        first,
        second,
    ]


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=1)
)
def test_text_is_carried_as_it_is(argv: list[str]) -> None:
    assert encode_argv(argv) == argv
    if argv[0]:
        assert decode_argv(list(argv), field="argv") == tuple(argv)


def test_bytes_that_are_no_utf8_are_carried_as_base64() -> None:
    assert encode_argv(["x", "a\udcff"]) == ["x", {"b64": "Yf8="}]


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        ([], "names no program"),
        ([""], "names no program"),
        ([{"b64": ""}], "names no program"),
        (["x"] * (MAX_ARGV + 1), "more than"),
        (["x", "a\0b"], "NUL"),
        (["x", {"b64": "AA=="}], "NUL"),
        (["x" * (MAX_ARGUMENT_BYTES + 1)], "at most"),
        (["x", {"b64": "not base64!"}], "b64"),
        (["x", {"b64": "é"}], "b64"),
        (["x", {"b65": "eA=="}], "b64"),
        (["x", {}], "b64"),
        (["\ud800"], "Unicode"),
    ],
)
def test_arguments_no_program_can_have_are_refused(argv: Encoded, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem) as caught:
        decode_argv(argv, field="jobs[1].argv")
    assert caught.value.field == "jobs[1].argv"


def test_arguments_at_their_limits_are_accepted() -> None:
    assert len(decode_argv(["x"] * MAX_ARGV, field="argv")) == MAX_ARGV
    assert decode_argv(["x" * MAX_ARGUMENT_BYTES], field="argv")


def test_an_empty_argument_after_the_program_is_an_argument() -> None:
    assert decode_argv(["x", ""], field="argv") == ("x", "")


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("prioritty", "priority"),
        ("claim", "claims"),
        ("queue_timout", "queue_timeout"),
        ("request-id", "request_id"),
    ],
)
def test_an_unknown_field_is_answered_with_the_nearest_known_one(
    wrong: str, meant: str
) -> None:
    value = {"repo": "a", "argv": ["x"], wrong: "y"}
    with pytest.raises(InvalidInput, match=f"did you mean '{meant}'") as caught:
        convert(value, JobRequest, where="jobs[7]")
    assert caught.value.field == f"jobs[7].{wrong}"


def test_an_unknown_field_like_no_other_is_answered_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match=r"is not a known field \(allowed: repo"):
        convert({"repo": "a", "argv": ["x"], "qqq": 1}, JobRequest)
    # By the name that it has outside of the program, where that is another one.
    with pytest.raises(InvalidInput, match="did you mean 'for'"):
        convert({"mode": "maintenance", "fo": "2h"}, PolicyRequest)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({"repo": 1, "argv": ["x"]}, "repo"),
        ({"repo": "a", "argv": ["x", 1]}, "argv[1]"),
        ({"repo": "a", "argv": ["x"], "env": {"A": 1}}, "env[...]"),
        ({"repo": "a"}, "input"),
        ([], "input"),
    ],
)
def test_a_value_of_the_wrong_type_is_told_with_its_field(
    value: object, field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        convert(value, JobRequest)
    assert caught.value.field == field


def test_a_query_for_a_state_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        convert({"state": ["sleeping"]}, JobQuery)
    assert caught.value.field == "state[0]"
    assert "running" in caught.value.allowed
    with pytest.raises(InvalidInput, match="'quued' is unknown; did you mean 'queued'"):
        convert({"state": ["queued", "quued"]}, Selection)


@given(st.text(max_size=20))
def test_any_unknown_field_name_gives_an_input_error_that_names_it(name: str) -> None:
    if name in JobQuery.__struct_fields__ or "`" in name:
        return
    with pytest.raises(InvalidInput) as caught:
        convert({name: 1}, JobQuery)
    assert caught.value.field in (" ".join(clean(name).split()), name, "input")


def test_the_nearest_name_is_one_of_the_known_or_none() -> None:
    assert nearest("wrokers", ["workers", "agents"]) == "workers"
    assert nearest("zzz", ["workers", "agents"]) is None


def test_the_next_chunk_of_a_log_begins_where_this_one_ends() -> None:
    assert LogChunk(offset=10, data=b"abc", missing=2, ended=False).next_offset == 13
