"""Somebody sets the clock while a service runs: nothing ends, starts or starves."""

from __future__ import annotations

from datetime import UTC, datetime
from time import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

DAY = 86_400

#: The wall clock of the service is ahead by what is in a file.
PATCH = """
import time
real = time.time
def set_clock():
    with open({file!r}) as file:
        return real() + float(file.read() or 0)
time.time = set_clock
"""

SETTINGS = "[limits]\nworkers = 1\n"


@pytest.mark.parametrize("step", [DAY, -DAY])
def test_a_clock_that_is_set_ends_starts_and_starves_nothing(
    make_service: Callable[[str], LiveService], step: int
) -> None:
    service = make_service(SETTINGS)
    hand = service.root / "hand"
    hand.write_text("0")
    service.start_patched(PATCH.format(file=str(hand)))
    service.add("app")
    gate, bell = service.gate(), service.bell()
    runs = service.bash("app", f"{bell.ring}; {gate.wait}", "--timeout", "1h")
    bell.wait()
    order = service.root / "order"
    budgets = ("--queue-timeout", "1h", "--admission-timeout", "1h", "--read-only")
    first = service.bash("app", f"echo first >> {order}", *budgets)
    held = service.bash("app", "true", *budgets)
    service.cli("hold", held, status=0)
    hand.write_text(str(step))
    second = service.bash("app", f"echo second >> {order}", *budgets)
    # Whoever looks now has all queue budgets and everything due looked at.
    for job in (first, second, held):
        assert service.show(job)["state"] == "queued"
        assert "since" in service.why(job)
    assert service.show(runs)["state"] == "running"
    gate.open()
    for job in (runs, first, second):
        assert service.end_of(job)["state"] == "succeeded"
    assert order.read_text() == "first\nsecond\n"
    assert service.show(held)["state"] == "queued"
    # What people read is what the wall clock says.
    told = datetime.fromisoformat(service.show(second)["created_at"])
    assert abs(told.astimezone(UTC).timestamp() - (time() + step)) < 60
    service.cli("unhold", held, status=0)
    assert service.end_of(held)["state"] == "succeeded"
