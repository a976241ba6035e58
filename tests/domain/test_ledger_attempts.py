"""What the ledger makes of one attempt after the other."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from forge_actors.domain.ledger import Ledger
from tests.domain.making import (
    IDENTITY,
    INTERRUPTED,
    SUCCESS,
    dispatch_any,
    make_job,
)

PLAIN = ("workers",)


@pytest.mark.parametrize("told", [False, True])
def test_what_ran_has_one_event_of_it(told: bool) -> None:
    ledger = Ledger("repo")
    ledger.add(make_job("a"), (), 0.0)
    dispatch_any(ledger, 0.0)
    starts = ledger.started("a", 1, IDENTITY, 1.0) if told else []
    events = [change.event.kind for change in starts]
    changes, _ = ledger.finish("a", 1, replace(SUCCESS, identity=IDENTITY), None, 2.0)
    events += [change.event.kind for change in changes]
    assert events == ["job_running", "job_succeeded"]


def test_a_job_that_waits_again_waits_from_its_new_place() -> None:
    ledger = Ledger("repo")
    ledger.add(make_job("a", "write:path:a", replay="safe"), (), 0.0)
    ledger.add(make_job("like-a", "write:path:a", priority=3), (), 0.0)
    dispatch_any(ledger, 0.0)
    ledger.add(make_job("b", "write:path:b", queued_at=50.0), (), 50.0)
    ledger.finish("a", 1, INTERRUPTED, None, 100.0)
    assert [offer.job for offer in ledger.offers(100.0)] == ["b"]
    _, first = ledger.dispatch(PLAIN, 100.0)
    assert first is not None
    assert first.id == "b"
