"""How a run of an EPIC is told to end, and what its workers are told then."""

from __future__ import annotations

import pytest

from forge_actors.domain.epic.records import AdmissionStatus
from forge_actors.domain.epic.stopping import EXITS, End, Ending

GRACE = 30.0


def test_a_run_is_open_until_somebody_asks() -> None:
    ending = Ending(GRACE)
    assert (ending.open, ending.interrupted, ending.pressing) == (True, False, False)
    assert (ending.reason, ending.deadline) == (None, None)
    assert ending.admission == AdmissionStatus("open")
    assert ending.step(5.0) == "nothing"
    assert ending.open


def test_a_drain_tells_workers_nothing() -> None:
    ending = Ending(GRACE)
    ending.request("drain")
    assert ending.admission == AdmissionStatus("closed", "stop-requested")
    assert (ending.reason, ending.open, ending.pressing) == ("drained", False, False)
    assert [ending.step(at) for at in (0.0, 1e9)] == ["nothing"] * 2
    assert not ending.interrupted
    ending.request("drain")
    assert ending.reason == "drained"


@pytest.mark.parametrize("signalled", [False, True])
def test_an_interrupt_is_passed_on_and_at_the_end_of_the_grace_again(
    signalled: bool,
) -> None:
    ending = Ending(GRACE)
    if signalled:
        ending.signals += 1
    else:
        ending.request("now")
    assert ending.open, "nothing was done about it so far"
    assert ending.pressing
    assert ending.step(100.0) == "interrupt"
    assert (ending.interrupted, ending.pressing) == (True, False)
    assert ending.deadline == 100.0 + GRACE
    why, reason = ("interrupted",) * 2 if signalled else ("stop-requested", "stopped")
    assert ending.admission == AdmissionStatus("closed", why)  # type: ignore[arg-type]
    assert ending.reason == reason
    assert ending.step(129.9) == "nothing"
    assert ending.step(130.0) == "leave"
    assert ending.step(131.0) == "nothing"


def test_a_second_one_ends_the_run_at_once() -> None:
    for second in (lambda e: e.request("now"), lambda e: setattr(e, "signals", 2)):
        ending = Ending(GRACE)
        ending.signals = 1
        assert ending.step(0.0) == "interrupt"
        second(ending)
        assert ending.pressing
        assert ending.step(1.0) == "leave"
        assert not ending.pressing
        assert ending.step(2.0) == "nothing"


def test_two_at_once_are_two_steps() -> None:
    ending = Ending(GRACE)
    ending.signals = 2
    assert ending.step(0.0) == "interrupt"
    assert ending.pressing
    assert ending.step(0.0) == "leave"


def test_asking_twice_for_the_same_is_asking_once() -> None:
    ending = Ending(GRACE)
    ending.request("now")
    ending.request("now")
    assert ending.step(0.0) == "interrupt"
    assert ending.step(0.0) == "nothing"


def test_what_came_first_is_why_nothing_more_begins() -> None:
    ending = Ending(GRACE)
    ending.degrade("snapshot-refused")
    assert ending.admission == AdmissionStatus("degraded", "snapshot-refused")
    assert (ending.reason, ending.open) == ("degraded", False)
    ending.request("drain")
    assert ending.admission == AdmissionStatus("degraded", "snapshot-refused")
    assert [ending.reason] == ["degraded"]
    ending.signals = 1
    assert ending.step(0.0) == "interrupt"
    assert ending.admission.status == "degraded"
    assert ending.reason == "interrupted"
    ending = Ending(GRACE)
    ending.request("drain")
    ending.degrade("epic-not-admissible")
    assert ending.reason == "drained"
    assert ending.admission == AdmissionStatus("degraded", "epic-not-admissible")


def test_the_status_of_a_run_is_by_its_end() -> None:
    assert {reason: End(reason).status for reason in EXITS} == EXITS
    assert End(None).status == 1
    assert (End("drained").wait, End("drained").left) == (None, ())
