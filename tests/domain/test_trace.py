"""A timeline as a trace: what the format asks for, and nothing that is secret."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forge_actors.domain.picture.trace import trace
from tests.domain.picture_kit import EMPTY, EPOCH, HOSTILE, example

Entry = dict[str, Any]
#: What each phase of the format must have, and of which type.
FIELDS: dict[str, dict[str, type]] = {
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": int, "dur": int},
    "C": {"name": str, "pid": int, "ts": int, "args": dict},
    "M": {"name": str, "pid": int, "tid": int, "args": dict},
}
METADATA = {"process_name": "name", "process_sort_index": "sort_index"}
METADATA |= {"thread_name": "name"}


def events(made: dict[str, Any]) -> list[Entry]:
    """The events of a trace that was written and read, each as the format wants it."""
    read = json.loads(json.dumps(made))
    assert set(read) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert read["displayTimeUnit"] in ("ms", "ns")
    found: list[Entry] = read["traceEvents"]
    for event in found:
        for field, wanted in FIELDS[event["ph"]].items():
            assert type(event[field]) is wanted, (field, event)
        if event["ph"] == "M":
            assert METADATA[event["name"]] in event["args"]
        if event["ph"] == "X":
            assert event["dur"] >= 0
        if event["ph"] == "C":
            assert all(type(v) in (int, float) for v in event["args"].values())
    return found


def of(found: list[Entry], phase: str, **wanted: object) -> list[Entry]:
    return [
        event
        for event in found
        if event["ph"] == phase
        and all(event.get(key) == value for key, value in wanted.items())
    ]


def names(found: list[Entry]) -> dict[int, str]:
    named = of(found, "M", name="process_name")
    assert len({event["pid"] for event in named}) == len(named)
    return {event["pid"]: event["args"]["name"] for event in named}


@pytest.mark.parametrize("timeline", [example(), example(HOSTILE), EMPTY])
def test_it_is_what_the_format_asks_for(timeline: Any) -> None:
    found = events(trace(timeline))
    tracks = {(e["pid"], e["tid"]) for e in of(found, "M", name="thread_name")}
    assert {(e["pid"], e["tid"]) for e in of(found, "X")} == tracks
    assert {event["pid"] for event in found} == set(names(found))


@pytest.mark.parametrize("timeline", [example(), example(HOSTILE)])
def test_what_is_on_one_track_does_not_cross(timeline: Any) -> None:
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in of(events(trace(timeline)), "X"):
        if event["cat"] != "service":
            times = (event["ts"], event["ts"] + event["dur"])
            tracks.setdefault((event["pid"], event["tid"]), []).append(times)
    for spans in tracks.values():
        open_ends: list[int] = []
        for began, ended in sorted(spans, key=lambda each: (each[0], -each[1])):
            while open_ends and open_ends[-1] <= began:
                open_ends.pop()
            assert not open_ends or ended <= open_ends[-1]
            open_ends.append(ended)


def test_there_is_a_track_for_each_repository_and_kind_of_token() -> None:
    found = events(trace(example()))
    assert sorted(names(found).values()) == [
        "repository app",
        "repository lint",
        "service",
        "token lint",
        "token workers (of 4)",
    ]
    [app] = [pid for pid, name in names(found).items() if name == "repository app"]
    assert len(of(found, "X", pid=app)) == 8 + 2, "and two of standing still"


def test_an_attempt_says_whose_it_was_and_how_it_ended() -> None:
    found = events(trace(example()))
    [failed, on_token] = [
        event for event in of(found, "X") if event.get("args", {}).get("job") == "j2"
    ]
    assert failed["args"] == on_token["args"]
    assert failed["args"] == {
        "job": "j2",
        "attempt": 1,
        "repository": "app",
        "kind": "check",
        "end": "failed",
        "error": "lint",
        "exit_code": 7,
        "tokens": "workers",
    }
    assert failed["ts"] == (EPOCH + 500) * 1_000_000
    assert failed["dur"] == 700 * 1_000_000


def test_what_runs_reaches_to_the_end() -> None:
    found = events(trace(example()))
    [running, _] = [e for e in of(found, "X") if e.get("args", {}).get("job") == "lint"]
    assert running["ts"] + running["dur"] == (EPOCH + 3600) * 1_000_000


def test_how_many_waited_is_counted_where_it_changes() -> None:
    counted = of(events(trace(example())), "C")
    assert [event["args"]["queued"] for event in counted] == [0.0, 1.0, 2.5, 12.0]
    assert [(event["ts"] / 1e6 - EPOCH) for event in counted] == [0, 900, 1800, 2700]


def test_nothing_in_it_can_steer_a_terminal() -> None:
    made = json.dumps(trace(example(HOSTILE)), ensure_ascii=False)
    assert made.isprintable()
