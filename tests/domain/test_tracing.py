"""Trace contexts and spans: what follows from the events of a job."""

from __future__ import annotations

import pytest

from forge_actors.domain.events import Event
from forge_actors.domain.spans import About, Attempts, Begun, Ended, span_of
from forge_actors.domain.tracing import TraceParent, own_span, parse_trace

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def event(state: str, at: float, job: str = "j", **data: object) -> Event:
    return Event(f"job_{state}", at, "r", job, data)


def test_a_context_is_read_as_it_was_written() -> None:
    found = parse_trace(PARENT)
    assert found is not None
    assert str(found) == PARENT
    assert parse_trace(PARENT[:-1] + "0") == found._replace(flags=0)
    # Of a later version what is known is taken.
    assert parse_trace("cc" + PARENT[2:-2] + "09") == found


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        PARENT.upper(),
        PARENT + "-00",
        PARENT + "\n",
        "ff" + PARENT[2:],
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        PARENT.replace("a", "g"),
    ],
)
def test_what_is_no_context_is_none(text: str | None) -> None:
    assert parse_trace(text) is None


def test_the_span_of_an_attempt_follows_from_its_job() -> None:
    parent = parse_trace(PARENT)
    assert parent is not None
    one = own_span("j", 1, parent)
    assert (one.trace, one.flags) == (parent.trace, 1)
    assert one == own_span("j", 1, parent)
    assert one.span not in (own_span("j", 2, parent).span, parent.span)
    alone = own_span("j", 1, None)
    assert alone.span == one.span
    assert alone.trace == own_span("j", 2, None).trace != own_span("k", 1, None).trace
    assert parse_trace(str(alone)) == alone


def test_each_attempt_ends_once_with_its_moments() -> None:
    attempts = Attempts({"old": Begun(3, 0.5, running=0.75)})
    first = attempts.add(
        [
            event("queued", 1.0, reason="accepted"),
            event("dispatched", 2.0, attempt=1),
            event("running", 2.5),
            event("waiting_for_retry", 4.0, attempt=1, error={"code": "WORKER_LOST"}),
            event("queued", 5.0),
            event("cancelled", 5.5, "waited", error={"code": "CANCELLED"}),
            event("succeeded", 6.0, "old"),
            Event("paused", 6.0),
        ]
    )
    assert first == [
        Ended("j", "waiting_for_retry", 4.0, Begun(1, 2.0, None, 2.5), "WORKER_LOST"),
        Ended("waited", "cancelled", 5.5, None, "CANCELLED"),
        Ended("old", "succeeded", 6.0, Begun(3, 0.5, None, 0.75)),
    ]
    second = attempts.add([event("dispatched", 7.0, attempt=2), event("failed", 8.0)])
    assert second == [Ended("j", "failed", 8.0, Begun(2, 7.0, 4.0))]


def test_a_span_holds_its_phases() -> None:
    parent = TraceParent(5, 7, 1)
    about = About("check", "app", 1.0, parent)
    whole = span_of(Ended("j", "failed", 9.0, Begun(1, 3.0, None, 4.0), "X"), about)
    assert (whole.name, whole.start, whole.end) == ("job check", 1.0, 9.0)
    assert (whole.id, whole.parent) == (own_span("j", 1, parent), parent)
    phases = [(each.name, each.start, each.end) for each in whole.within]
    assert phases == [("queue", 1.0, 3.0), ("start", 3.0, 4.0), ("run", 4.0, 9.0)]
    assert {each.parent for each in whole.within} == {whole.id}
    assert len({each.id for each in (whole, *whole.within)}) == 4
    assert whole.error == whole.attributes["error.type"] == "X"
    assert whole.attributes["forge.outcome"] == "failed"


def test_one_that_never_ran_was_in_the_queue_alone() -> None:
    about = About("check", "app", 1.0, None)
    whole = span_of(Ended("j", "cancelled", 9.0, None), about)
    assert [(each.name, each.end) for each in whole.within] == [("queue", 9.0)]
    assert whole.parent is None
    assert whole.error is None


def test_a_second_attempt_waits_from_the_end_of_the_first() -> None:
    about = About("check", "app", 1.0, None)
    whole = span_of(Ended("j", "succeeded", 5.0, Begun(2, 6.0, 4.0, 7.0)), about)
    assert whole.start == 4.0
    assert all(each.end >= each.start for each in (whole, *whole.within))
