"""Schedulers of an EPIC that are killed at the worst moments, and the next one."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.epic_stand import KILLED, Stand

if TYPE_CHECKING:
    from collections.abc import Iterator

KILL = -9


@pytest.fixture
def stand() -> Iterator[Stand]:
    made = Stand()
    made.issue(1)
    yield made
    made.close()


def check(stand: Stand, *issues: int) -> None:
    """What holds whatever happened: each generation has one claim, the last one alone
    may be open, each is of the invocation that began it, and none is without a binding.
    """
    assert stand.record["schema"] == 1
    for issue in issues:
        claims = stand.claims(issue)
        assert [each.generation for each in claims] == [*range(1, len(claims) + 1)]
        assert all(each.closed is not None for each in claims[:-1])
        invocations = {each.invocation_id for each in claims}
        assert len(invocations) == len(claims), "one worker an issue and run at most"
        for older, newer in pairwise(claims):
            superseded = older.closed is not None and (
                older.closed.classification == "superseded"
            )
            assert (newer.supersedes == older.ref) == superseded
        folder = stand.kept / "issues" / str(issue)
        assert not claims or (folder / "binding.json").exists()


#: Where it is killed, whether its record, binding and claim are there by then, and how
#: the claims are closed after the next run.
POINTS = {
    "the lock": ("actor._begin", "", ["settled"]),
    "its record": ("FileNamespaces.remove_stop", "r", ["settled"]),
    "the binding": ("FileNamespaces.open_claim", "rb", ["settled"]),
    "the claim": ("SpawnedWorkers.start", "rbc", ["abandoned", "settled"]),
}


@pytest.mark.parametrize("point", POINTS)
def test_one_that_is_killed_before_its_worker_began_loses_nothing(
    stand: Stand, point: str
) -> None:
    place, kept, closings = POINTS[point]
    script = f"echo begun >> {stand.trace}; {stand.saves(1, 'ready_for_merge')}"
    killed = stand.run(script=script, changed=KILLED.format(place=place))
    assert killed.wait() == KILL, killed.lines
    folder = stand.kept / "issues" / "1"
    names = (stand.record_path, folder / "binding.json", folder / "claims" / "1.json")
    assert "".join("rbc"[i] for i in range(3) if names[i].exists()) == kept
    if "r" in kept:
        assert stand.status()["state"] == "killed"
        check(stand, 1)
    again = stand.run(verb="resume", script=script)
    assert again.wait() == 0, again.lines
    check(stand, 1)
    assert stand.closings(1) == closings
    assert stand.end == ("open", None, "nothing-admissible")
    assert stand.traced == ["begun"], "one worker was started"


def test_a_worker_that_nobody_noted_down_keeps_everybody_else_away(
    stand: Stand,
) -> None:
    gate, bell = stand.gate(), stand.bell()
    killed = stand.run(
        script=f"{bell.ring}; {gate.wait}",
        changed=KILLED.format(place="FileNamespaces.note_worker"),
    )
    assert killed.wait() == KILL
    bell.wait()
    [claim] = stand.claims(1)
    assert (claim.closed, claim.worker) == (None, None)
    assert stand.run("--force", script="exit 0").wait() == 3
    assert stand.status()["children"][0]["state"] == "running"
    gate.open()
    stand.let_go(1)
    stand.let_go()
    again = stand.run(verb="resume", script=stand.saves(1, "done"))
    assert again.wait() == 0, again.lines
    check(stand, 1)
    assert stand.closings(1) == ["abandoned", "settled"]


#: What the worker has saved, and what the graph then says of the issue: how its claims
#: are closed after the next run, and why.
LEFT = {
    "settled": ("failed", "", ["settled"], "come to its end (failed)"),
    "in the middle": ("implement", "", ["superseded", "settled"], "#1: resume"),
    "of a closed issue": (
        "implement",
        "state = 'closed'",
        ["resumable"],
        "is closed: closed:completed",
    ),
    "of a blocked issue": ("check", "blocked_by = [2]", ["resumable"], "blocked:#2"),
}


@pytest.mark.parametrize("left", LEFT)
def test_one_that_is_killed_before_it_takes_in_the_end_of_a_worker(
    stand: Stand, left: str
) -> None:
    phase, more, closings, told = LEFT[left]
    killed = stand.run(
        script=stand.saves(1, phase),
        changed=KILLED.format(place="FileNamespaces.close_claim"),
    )
    assert killed.wait() == KILL
    check(stand, 1)
    assert stand.closings(1) == [None]
    if more:
        stand.issue(2, "blocked_by = [3]")
        stand.issue(3, "blocked_by = [2]")
        stand.issue(1, more)
    again = stand.run(verb="resume", script=stand.saves(1, "ready_for_merge"))
    assert again.wait() == 0, again.lines
    assert told in again.err
    check(stand, 1)
    assert stand.closings(1) == closings
    before = stand.files()
    third = stand.run(script="exit 9")
    assert third.wait() == 0, third.lines
    changed = {name for name, text in stand.files().items() if before.get(name) != text}
    assert {name.rpartition("/")[2] for name in changed} == {"scheduler.json"}


def test_two_workers_outlive_their_scheduler_and_each_is_judged_by_what_it_saved(
    stand: Stand,
) -> None:
    stand.issue(2)
    gates, bell = [stand.gate(), stand.gate()], stand.bell()
    ready, middle = stand.saves(1, "ready_for_merge"), stand.saves(2, "review")
    script = (
        f"{bell.ring}; test $1 = 1 && {{ {gates[0].wait}; {ready}; }}"
        f" || {{ {gates[1].wait}; {middle}; }}"
    )
    killed = stand.run(script=script)
    bell.wait(2)
    killed.until("#2: start")
    killed.send(9)
    assert killed.wait() == KILL
    stop = stand.call("stop", "--follow")
    stop.until("its workers are asked to end")
    watch = stand.call("status", "--watch", str(stand.plan))
    for issue, gate in enumerate(gates, start=1):
        for words in (["run"], ["run", "--force"], ["resume"]):
            refused = stand.run(*words[1:], verb=words[0], script="exit 0")
            assert refused.wait() == 3
            assert "workers of one that has ended still do" in refused.err
        assert [each for each in (1, 2) if stand.is_busy(each)] == [1, 2][issue - 1 :]
        gate.open()
        stand.let_go(issue)
    assert (stop.wait(), watch.wait()) == (0, 0)
    check(stand, 1, 2)
    assert [stand.closings(issue) for issue in (1, 2)] == [[None], [None]]
    again = stand.run(verb="resume", script=stand.saves(2, "ready_for_merge"))
    assert again.wait() == 0, again.lines
    check(stand, 1, 2)
    assert stand.closings(1) == ["settled"]
    assert stand.closings(2) == ["superseded", "settled"]
    kinds = [[claim.kind for claim in stand.claims(issue)] for issue in (1, 2)]
    assert kinds == [["start"], ["start", "resume"]]
