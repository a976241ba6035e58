"""What a run of an EPIC says, one line for one event."""

from __future__ import annotations

from typing import Any

import pytest

from forge_actors.domain.epic import telling
from forge_actors.domain.epic.graph import (
    CLOSED,
    OPEN,
    EpicNode,
    RepositoryNode,
    SnapshotRefused,
)
from forge_actors.domain.epic.namespace import Classification
from forge_actors.domain.epic.records import Invocation, SnapshotSummary
from forge_actors.domain.epic.verdicts import Verdict
from forge_actors.domain.github.places import IssueAt, Place
from forge_actors.testing.epic.records import DIGEST, made_claim, moment

HERE = Place("github.com", "octo", "demo")
SECRET = "ghp_" + "a1B2" * 9


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  a line \n", "a line"),
        ("x" * telling.MAX_LINE, "x" * telling.MAX_LINE),
        ("x" * (telling.MAX_LINE + 1), "x" * (telling.MAX_LINE - 1) + "…"),
        ("x" * 5 * telling.MAX_LINE, "x" * (telling.MAX_LINE - 1) + "…"),
    ],
)
def test_a_line_is_one_and_has_an_end(text: str, shown: str) -> None:
    assert telling.line(text) == shown
    assert SECRET not in telling.line(f"it said {SECRET}")
    assert "\x1b" not in telling.line("\x1b[2J")


def test_a_run_says_what_it_works_through() -> None:
    invocation = Invocation("i-00000001", moment(0))
    for state, closed in ((OPEN, False), (CLOSED, True)):
        epic = EpicNode(9007, IssueAt(HERE, 7), state)
        said = telling.began(epic, RepositoryNode(101, HERE), invocation, 3)
        assert said.startswith("EPIC #7 of octo/demo")
        assert ("closed" in said) is closed
        assert "i-00000001" in said
        assert said.endswith("at most 3 at once")


def test_a_graph_that_cannot_be_read_says_whether_that_may_be_over() -> None:
    gone = SnapshotRefused("not-found", "there is none", wait=5.0)
    said = telling.refused(gone, 0.0)
    assert "(not-found): there is none" in said
    assert "again" not in said
    busy = SnapshotRefused("rate-limited", "too often", wait=90.5)
    said = telling.refused(busy, 1000.0)
    assert said.endswith("after 1970-01-01T00:18:11.000Z (in 90 s)")
    assert "again" in telling.refused(SnapshotRefused("unavailable", "x"), 0.0)
    assert telling.after(None, 5.0) == ""
    assert telling.after(1.0, 5.0) == " after 1970-01-01T00:00:06.000Z (in 1 s)"


def test_a_snapshot_is_counted_without_what_there_is_none_of() -> None:
    digest = f"sha256:{'0123456789abcdef' * 4}"
    found = SnapshotSummary(digest, moment(0), 4, 1, 0, 0, 0, 0, 3)
    assert telling.summary(found) == "snapshot 01234567: 4 children: 1 ready, 3 held"
    one = SnapshotSummary(DIGEST, moment(0), 1, 0, 0, 1, 0, 0, 0)
    assert telling.summary(one) == "snapshot 00000000: 1 child: 1 closed"
    none = SnapshotSummary(DIGEST, moment(0), 0, 0, 0, 0, 0, 0, 0)
    assert telling.summary(none) == "snapshot 00000000: 0 children"
    assert telling.ended(7, "drained", {"done": 2, "held": 0}) == (
        "EPIC #7: drained: 2 done"
    )
    assert telling.counted({}) == ""


def test_what_began_is_found_by_its_process_and_its_log() -> None:
    assert telling.started(3, made_claim(3, 2), 42, "/l/3.log") == (
        "#3: start, generation 2, pid 42, log /l/3.log"
    )
    assert telling.stale(3, ["it is closed", "its parent is #8"]) == (
        "#3 has changed: it is closed; its parent is #8"
    )


SETTLED = Classification("settled", "", None, "done")
RESUMABLE = Classification("resumable")
SEE = "; its log may say why: /l/3.log"


@pytest.mark.parametrize(
    ("status", "found", "became", "why", "said"),
    [
        (0, SETTLED, "settled", "", "(status 0); done; claim closed as settled"),
        (
            *(3, SETTLED, "settled", "a test fails"),
            "(status 3); done: a test fails; claim closed as settled",
        ),
        (0, RESUMABLE, None, "why", "(status 0); resumable; claim left open"),
        (130, RESUMABLE, None, "", "(status 130); resumable; claim left open"),
        (
            *(131, RESUMABLE, "resumable", ""),
            f"(status 131); resumable; claim closed as resumable{SEE}",
        ),
        (
            *(None, RESUMABLE, None, ""),
            f"(unknown status); resumable; claim left open{SEE}",
        ),
    ],
)
def test_what_ended_says_how_and_what_became_of_its_claim(
    status: int | None, found: Classification, became: str | None, why: str, said: str
) -> None:
    line = telling.finalized(3, status, found, became, why, "/l/3.log")
    assert line == f"#3: its worker ended {said}"


@pytest.mark.parametrize("open_", [False, True])
@pytest.mark.parametrize("phase", [None, "failed"])
def test_what_is_left_says_why(open_: bool, phase: str | None) -> None:
    def said(kind: Any, reason: str) -> str:
        verdict = Verdict(3, 9003, kind, reason)
        return telling.held(verdict, claim_open=open_, phase=phase)

    line = said("held", "held:spawn-failed")
    assert line.startswith("#3 is left (spawn-failed): its worker could not be started")
    assert (" (failed)" in line) is (phase is not None)
    assert ("stays open" in line) is open_
    assert said("owned", "owned").startswith("#3 is left (owned): somebody else")
    assert said("held", "held:new").startswith("#3 is left (new): new")


def test_the_issues_that_go_on_or_are_not_closed_are_named() -> None:
    end = "; the next run finds out what became of them"
    assert telling.left([], [3, 1]) == f"workers go on with #1, #3{end}"
    assert telling.left([2], []) == f"claims of #2 are not closed{end}"
    assert telling.left([2], [3]) == (
        f"workers go on with #3 and claims of #2 are not closed{end}"
    )
