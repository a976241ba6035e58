"""How runs of an EPIC end: what is recorded then, and the status of the process."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.epic_stand import Stand

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.bench import Bell, Gate
    from tests.acceptance.epic_forks import Call

#: What happens, one after the other, and then the admission, the reason of the end and
#: the status. `D` and `N` ask for the end as `epic stop` does, the others are signals
#: (2 is SIGINT); `R` makes the plan unreadable, `B` is N and 2 in one moment.
ENDS: dict[str, tuple[str, str, int]] = {
    "D": ("closed/stop-requested", "drained", 0),
    "N": ("closed/stop-requested", "stopped", 130),
    "2": ("closed/interrupted", "interrupted", 130),
    "15": ("closed/interrupted", "interrupted", 130),
    "1": ("closed/interrupted", "interrupted", 130),
    "D N": ("closed/stop-requested", "stopped", 130),
    "D 2": ("closed/stop-requested", "interrupted", 130),
    "N 2": ("closed/stop-requested", "stopped", 130),
    "2 N": ("closed/interrupted", "interrupted", 130),
    "B": ("closed/interrupted", "interrupted", 130),
    "R": ("degraded/snapshot-refused", "degraded", 1),
    "R D": ("degraded/snapshot-refused", "degraded", 1),
    "R N": ("degraded/snapshot-refused", "stopped", 130),
    "R 2": ("degraded/snapshot-refused", "interrupted", 130),
}
#: Statements that have a run see a request to stop only when something else wakes it.
UNWATCHED = """
import trio
async def unwatched(*_args, task_status):
    task_status.started()
    await trio.sleep_forever()
epic_run.watch_stop = unwatched
"""
#: Those that pass an interrupt on twice, and leave a worker alone that ignores both.
TWICE = ("N 2", "2 N", "B")
#: Of a worker: it tells of each interrupt, and ends with the first one, or not; it ends
#: too when the gate is opened.
WORKER = (
    "trap 'echo interrupted >> {trace}; {ring}; {then}' INT; {ring};"
    " while ! read x < {gate}; do test -p {gate} || exit 0; done"
)


@pytest.fixture
def stand() -> Iterator[Stand]:
    made = Stand()
    yield made
    made.close()


def worker(stand: Stand, gate: Gate, bell: Bell, then: str) -> str:
    return WORKER.format(trace=stand.trace, ring=bell.ring, gate=gate.path, then=then)


def happen(stand: Stand, run: Call, step: str, after: str | None) -> None:
    """Do one of the steps, and wait until the run has taken notice of it."""
    if step == "D":
        stand.stop("--drain")
        run.until("asked to stop (drain)")
    elif step == "N":
        stand.stop("--now")
        if after is None or not after.isdecimal():
            run.until("nothing more begins, workers of #1 stop")
    elif step == "R":
        stand.write_plan("no plan")
        run.until("the graph could not be read (malformed)")
    elif step == "B":
        stand.stop("--now")
        run.send(signal.SIGINT)
        run.until("interrupted: nothing more begins, workers of #1 stop")
    else:
        run.send(int(step))
        if after != "N":
            run.until("interrupted: nothing more begins, workers of #1 stop")


@pytest.mark.parametrize("case", ENDS)
def test_how_a_run_ends(stand: Stand, case: str) -> None:
    admission, reason, status = ENDS[case]
    gate, bell = stand.gate(), stand.bell()
    stand.issue(1)
    stand.settings("1s" if "R" in case else "60s")
    then = "" if case in TWICE else "exit 130"
    script = worker(stand, gate, bell, then)
    run = stand.run(script=script, changed=UNWATCHED if case == "B" else "")
    run.until("#1: start")
    bell.wait()
    steps = case.split()
    for step, before in zip(steps, [None, *steps], strict=False):
        happen(stand, run, step, before)
        if case in TWICE:
            bell.wait()  # one that comes while another waits is none of its own
    by_itself = status != 130
    if by_itself:
        gate.open()
    assert run.wait() == status, run.lines
    assert stand.end == (*admission.split("/"), reason)
    if case not in TWICE:
        assert stand.closings(1) == ["abandoned"]
        assert stand.traced == ([] if by_itself else ["interrupted"])
        return
    told = len(stand.traced)
    assert told == 2 or (told, case) == (1, "B")
    assert set(stand.traced) == {"interrupted"}, "and nothing else reaches it"
    assert stand.is_busy(1)
    assert stand.closings(1) == [None]
    assert "workers go on with #1; the next run" in run.err
    refused = stand.run(verb="resume")
    assert refused.wait() == 3
    assert "workers of one that has ended still do" in refused.err
    gate.open()
    assert stand.run(verb="resume", script="exit 0").wait() == 0
    assert stand.closings(1) == ["abandoned"] * 2


def test_without_anything_to_begin_it_ends_well_and_at_once(stand: Stand) -> None:
    stand.issue(1, "state = 'closed'")
    stand.issue(2, "blocked_by = [3]")
    stand.issue(3, "blocked_by = [2]")
    run = stand.run(script="exit 0")
    assert run.wait() == 0
    assert stand.end == ("open", None, "nothing-admissible")
    assert "EPIC #1000: nothing-admissible: 1 closed, 2 blocked" in run.err


def test_what_nobody_can_tell_whose_it_is_keeps_everything_back(stand: Stand) -> None:
    stand.issue(4)
    (stand.kept / "issues" / "004").mkdir(parents=True)
    run = stand.run(script="exit 0")
    assert run.wait() == 1
    assert stand.end == ("degraded", "epic-not-admissible", "degraded")
    assert not (stand.kept / "issues" / "4").exists()
