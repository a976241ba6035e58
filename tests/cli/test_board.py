"""The board of the dashboard: what it knows follows the events, and is bounded."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forge_actors.cli.dashboard import board as boards
from forge_actors.cli.dashboard import words
from forge_actors.cli.dashboard.board import Board, Heading
from forge_actors.cli.dashboard.log_lines import LogLines
from forge_actors.cli.text import width
from forge_actors.domain.inbox import Inbox, Item
from forge_actors.domain.jobs import JobError, JobView
from tests.cli.board_kit import event, job

NOW = datetime(2026, 1, 2, 3, 6, 5, tzinfo=UTC)


def sections(board: Board, *wanted: str) -> dict[str, list[str]]:
    """The ends of the ids below each heading."""
    found: dict[str, list[str]] = {}
    for row in board.rows(wanted):
        if isinstance(row, Heading):
            found[row.section] = []
        else:
            found[list(found)[-1]].append(row.id[-2:])
    return found


def test_jobs_are_in_sections_in_an_order_that_helps() -> None:
    board = Board()
    board.begin(
        [
            job(1, "running", started_at="2026-01-02T03:04:06Z"),
            job(2, "dispatched"),
            job(3, "queued", priority="P2"),
            job(4, "waiting_for_dependency", priority="P0"),
            job(5, "failed", finished_at="2026-01-02T03:04:07Z"),
            job(6, "succeeded", finished_at="2026-01-02T03:04:08Z"),
            job(7, "waiting_for_approval"),
            job(8, "human_attention_required", finished_at="2026-01-02T03:04:05Z"),
        ]
    )
    assert sections(board) == {
        "attention": ["07"],
        "running": ["02", "01"],
        "waiting": ["04", "03"],
        "finished": ["06", "05", "08"],
    }
    board.set_inbox(Inbox([_item(job(8))], more=2, dismissed=0))
    assert sections(board)["attention"] == ["07", "08"]
    assert board.inbox_items == 3


def _item(of: JobView) -> Item:
    return Item("job:x", "job", "look", None, "app", of.id, evidence={}, actions=[])


def test_what_an_event_tells_is_seen_at_once_and_asked_for_later() -> None:
    board, known = Board(), job(1)
    board.begin([known])
    board.apply(event("job_dispatched", known, attempt=1, fence=2))
    assert board.jobs[known.id].state == "dispatched"
    assert board.jobs[known.id].attempt == 1
    board.apply(event("job_running", known, pid=7))
    assert board.jobs[known.id].started_at == "2026-01-02T03:05:05.000Z"
    error = {"code": "EXIT_NONZERO", "message": "it ended with 3"}
    board.apply(event("job_failed", known, attempt=1, error=error))
    ended = board.jobs[known.id]
    assert (ended.state, ended.finished_at) == ("failed", "2026-01-02T03:05:05.000Z")
    assert ended.error == JobError("EXIT_NONZERO", "it ended with 3")
    assert board.stale == {known.id}
    board.add([structs.replace(ended, exit_code=3)])
    assert board.stale == set()


def test_a_job_that_waits_again_says_for_what() -> None:
    board, known = Board(), job(1, "running")
    board.begin([known])
    board.apply(event("job_waiting_for_retry", known, attempt=1))
    again = board.jobs[known.id]
    assert (again.waiting or {})["kind"] == "retry"
    assert again.queued_at == "2026-01-02T03:05:05.000Z"
    board.apply(event("job_waiting_for_workspace", known, seq=2, reason="a claim"))
    assert board.jobs[known.id].queued_at == "2026-01-02T03:05:05.000Z"


def test_a_job_that_is_not_known_is_news() -> None:
    board = Board()
    board.apply(event("job_queued", job(1), reason="accepted"))
    assert board.news
    assert board.stale == set()


@pytest.mark.parametrize(
    ("kind", "status", "inbox"),
    [
        ("paused", True, False),
        ("provider_closed", True, True),
        ("inbox_dismissed", False, True),
        ("repository_status_changed", False, False),
    ],
)
def test_events_of_the_service_say_what_to_ask_for(
    kind: str, status: bool, inbox: bool
) -> None:
    board = Board()
    board.apply(event(kind))
    assert (board.status_stale, board.inbox_stale) == (status, inbox)


def test_a_question_that_was_answered_leaves_the_inbox() -> None:
    board, asks = Board(), job(1, "waiting_for_approval")
    board.begin([asks])
    board.apply(event("job_queued", asks, reason="answered"))
    assert board.inbox_stale


def test_the_oldest_are_let_go_and_what_needs_a_person_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(boards, "MAX_FINISHED", 2)
    monkeypatch.setattr(boards, "MAX_WAITING", 3)
    board = Board()
    board.set_inbox(Inbox([_item(job(0))], more=0, dismissed=0))
    board.begin([job(n, "failed", finished_at=f"2026-01-02T03:04:0{n}Z") for n in (0,)])
    board.add(job(n, "failed", finished_at="2026-01-02T03:04:09Z") for n in range(1, 6))
    board.add(job(n) for n in range(10, 16))
    assert "00" in sections(board)["attention"]
    assert len(board.jobs) == 2 + 3
    assert sections(board)["waiting"] == ["13", "14", "15"]


def test_a_heading_says_how_many_are_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    board = Board()
    board.status = {"counts": {"queued": 3}}
    board.begin([job(1), job(2)])
    [heading, *_] = board.rows()
    assert isinstance(heading, Heading)
    assert words.heading(heading) == "WAITING 2", "the third is news, and will come"
    monkeypatch.setattr(boards, "MAX_WAITING", 2)
    board.begin([job(1), job(2)])
    board.status = {"counts": {"queued": 1500, "waiting_for_limit": 1, "running": 0}}
    [heading, *_] = board.rows()
    assert isinstance(heading, Heading)
    assert words.heading(heading) == "WAITING 2 of 1,501, the newest"
    [heading, *_] = board.rows(["make"])
    assert isinstance(heading, Heading)
    assert words.heading(heading) == "WAITING 2"


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["lint"], ["01"]),
        (["app", "lib"], []),
        (["lib"], ["02"]),
        (["fail"], ["02"]),
        (["nightly", "queued"], ["03"]),
        (["codex"], ["03"]),
        (["1m8p57vc00000000003"], ["03"]),
        (["000003"], ["03"]),
        (["1m8p57vc00000000004"], []),
        (["waiting"], ["01", "03"]),
    ],
)
def test_a_filter_looks_where_people_look(wanted: list[str], found: list[str]) -> None:
    board = Board()
    board.begin(
        [
            job(1, name="Lint\u202e it"),
            job(2, "failed", repo="lib"),
            job(3, labels=["nightly"], provider="codex"),
        ]
    )
    shown = sections(board, *wanted)
    assert sorted(tail for tails in shown.values() for tail in tails) == found


def test_a_filter_sees_a_job_as_it_is_now() -> None:
    board, known = Board(), job(1, name="before")
    board.begin([known])
    assert sections(board, "before")
    board.add([structs.replace(known, name="behind")])
    assert not sections(board, "before")
    board.apply(event("job_cancelled", known))
    assert sections(board, "cancelled", "behind")


hostile = st.text() | st.just("\x1b[31mred\x1b]0;t\x07\u202e\r\nx\x9b2J")


@given(hostile, st.integers(1, 200))
def test_a_line_fits_and_steers_nothing(text: str, columns: int) -> None:
    shown = job(1, "running", name=text, repo=text, labels=[text])
    line = words.line(shown, columns, NOW)
    whole = f"{line.sign} {line.state} {line.rest}"
    assert "\n" not in whole
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in whole)
    if columns > 2 + words.STATE + 1:
        assert width(whole) <= columns
    for told in words.detail(shown, text, NOW):
        assert not any(ord(char) < 32 or 127 <= ord(char) < 160 for char in told)
        assert "\u202e" not in told


def test_a_line_says_what_matters() -> None:
    running = words.line(job(1, "running", attempt=2), 80, NOW)
    assert (running.sign, running.state.strip()) == (">", "running")
    assert "2m  attempt 2" in running.rest.replace("2m attempt", "2m  attempt")
    failed = job(2, "failed", exit_code=7, finished_at="2026-01-02T03:04:10Z")
    assert words.line(failed, 80, NOW).rest.endswith("5s exit 7")
    assert words.line(job(3, "running", paused=True), 80, NOW).sign == "|"
    waits = job(4, waiting={"kind": "claim", "holders": ["1m8p57vcabcdef"]})
    assert words.line(waits, 80, NOW).rest.endswith("claim (abcdef)")


def test_the_head_says_what_is_in_use() -> None:
    board = Board()
    board.status = {
        "service": {"home": "/home/x\x1b[2J"},
        "ready": True,
        "capacity": {
            "workers": {"used": 1, "limit": 3},
            "heavy_checks": {"used": 0, "limit": 2},
            "active_repositories": {"used": 1, "limit": 4},
        },
        "providers": {
            "claude": {"used": 0, "limit": 2, "state": "open"},
            "codex": {"used": 0, "limit": 3, "state": "closed"},
        },
        "pauses": [{"scope": "repo:app"}],
        "pressure": {"active": True, "reason": "load"},
        "counts": {"running": 1, "succeeded": 4},
        "degraded": ["the disk is full"],
    }
    first, meters, counts = words.head(board, 200, None)
    assert first == "forge-actors  ready  /home/x"
    assert meters == (
        "workers [####......] 1/3  heavy checks [..........] 0/2  codex 0/3 closed"
    )
    assert counts == (
        "attention 0  running 1  waiting 0  finished 4  paused: repo:app"
        "  pressure: load  the disk is full"
    )
    assert (
        words.head(board, 50, None)[1]
        == "workers 1/3  heavy checks 0/2  codex 0/3 closed"
    )
    assert words.head(board, 80, "it ended")[0].startswith("forge-actors  it ended")
    assert all(width(line) <= 20 for line in words.head(board, 20, None))


# -- the lines of a log ----------------------------------------------------------------


@given(st.lists(st.binary()))
def test_a_log_is_the_same_in_pieces_of_any_size(pieces: list[bytes]) -> None:
    whole, parts = LogLines(), LogLines()
    whole.feed(b"".join(pieces), final=True)
    for piece in pieces:
        parts.feed(piece)
    parts.feed(b"", final=True)
    assert parts.lines == whole.lines
    assert not any("\x1b" in line or "\n" in line for line in whole.lines)


def test_a_log_keeps_its_last_lines() -> None:
    log = LogLines()
    log.feed(b"one\ntwo\nthr")
    assert log.lines == ["one", "two", "thr"]
    log.feed(b"ee\n")
    log.feed(b"\n\x1b[31mfour\x1b[0m\tx")
    assert log.lines == ["one", "two", "three", "", "four    x"]
    log.feed(b"\n" * 30_000)
    assert len(log.lines) == 20_000
    assert log.dropped == 5 + 30_000 - 1 - 20_000
    log.feed(b"y" * 10_000)
    assert len(log.lines[-1]) == 4096


def test_a_word_is_found_both_ways_and_around() -> None:
    log = LogLines()
    log.feed(b"Error one\nnothing\nerror two\n")
    assert log.find("ERROR", 0, 1) == 0
    assert log.find("error", 1, 1) == 2
    assert log.find("error", 3, 1) == 0
    assert log.find("error", 1, -1) == 0
    assert log.find("error", -1, -1) == 2
    assert log.find("missing", 0, 1) is None
    assert log.find("", 0, 1) is None
    assert LogLines().find("x", 0, 1) is None
