"""What is to become of each child of an EPIC."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forge_actors.domain.epic.circles import circles
from forge_actors.domain.epic.graph import (
    BlockerNode,
    ChildNode,
    EpicNode,
    RepositoryNode,
    Snapshot,
    snapshot_of,
)
from forge_actors.domain.epic.progress import Progress
from forge_actors.domain.epic.verdicts import (
    FACTS,
    KINDS,
    MAX_NAMED,
    counts,
    cycles,
    evaluate,
    ready_set,
)
from forge_actors.domain.github.places import GITHUB, IssueAt, Place

HOME = Place(GITHUB, "octo", "demo")
OTHER = Place(GITHUB, "octo", "other")
EPIC = EpicNode(7, IssueAt(HOME, 7), "open")
MOMENT = "2026-01-01T00:00:00Z"


def child(number: int, *blockers: BlockerNode, **more: object) -> ChildNode:
    node = ChildNode(9000 + number, IssueAt(HOME, number), "open", blockers=blockers)
    return structs.replace(node, **more)


def blocker(
    number: int, state: str = "open", reason: str | None = None, place: Place = HOME
) -> BlockerNode:
    return BlockerNode(IssueAt(place, number), 9000 + number, state, reason)


def snapshot(*children: ChildNode) -> Snapshot:
    return snapshot_of(MOMENT, RepositoryNode(101, HOME), EPIC, children)


def reasons(
    *children: ChildNode,
    facts: dict[int, str] | None = None,
    by: tuple[str, ...] = (),
) -> list[str]:
    found = evaluate(snapshot(*children), facts or {}, satisfied_by=by)
    for each in found:
        assert each.reason.partition(":")[0] == each.kind
    return [each.reason for each in found]


#: Each stands above the ones after it: a child that is all of them is the first.
RANKS: list[tuple[str, dict[str, object], str | None]] = [
    ("owned", {}, "owned"),
    ("closed:completed", {"state": "closed", "reason": "completed"}, None),
    ("unsupported:pull-request", {"pull_request": True}, None),
    ("held:resumable", {}, "resumable"),
    ("blocked:#12", {"blockers": (blocker(12),)}, None),
    ("ready", {}, None),
]


@pytest.mark.parametrize("place", range(len(RANKS)))
def test_what_comes_first_counts(place: int) -> None:
    expected, fields, fact = RANKS[place]
    for _, more, weaker in [({}, {}, None), *RANKS[place + 1 :]]:
        fact = fact or weaker
        facts = {} if fact is None else {3: fact}
        node = child(3, **{**more, **fields})
        assert reasons(node, facts=facts) == [expected]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"state": "closed", "reason": "completed"}, "closed:completed"),
        ({"state": "closed", "reason": "not_planned"}, "closed:not-planned"),
        ({"state": "closed", "reason": "duplicate"}, "closed:duplicate"),
        ({"state": "closed"}, "closed"),
        ({"state": "closed", "reason": "\x1b[31m red"}, "closed"),
        ({"pull_request": True}, "unsupported:pull-request"),
        ({"at": IssueAt(OTHER, 3)}, "unsupported:other-repository"),
        ({"children": 1}, "unsupported:nested-epic"),
        ({"id": EPIC.id}, "unsupported:self"),
        ({"state": "merged"}, "unsupported:state"),
        ({"reason": "reopened"}, "ready"),
    ],
)
def test_each_kind_of_issue_has_its_reason(
    fields: dict[str, object], reason: str
) -> None:
    assert reasons(child(3, **fields)) == [reason]


@pytest.mark.parametrize("fact", [each for each in FACTS if each != "owned"])
def test_what_is_known_here_holds_an_issue(fact: str) -> None:
    assert reasons(child(3), child(4), facts={3: fact}) == [f"held:{fact}", "ready"]


def test_facts_are_about_the_repository_itself() -> None:
    stranger = child(3, at=IssueAt(OTHER, 3), id=1)
    found = reasons(stranger, child(3), facts={3: "owned"})
    assert found == ["unsupported:other-repository", "owned"]


def test_a_run_goes_by_the_numbers_of_the_repository_itself() -> None:
    progress: Progress[None] = Progress(1, 60.0)
    stranger = child(3, at=IssueAt(OTHER, 3), id=1)
    progress.snapshot = snapshot(child(3), stranger, structs.replace(stranger, id=2))
    [verdict] = progress.graph_verdicts().values()
    assert (verdict.issue_id, verdict.kind) == (9003, "ready")


def test_only_a_completed_blocker_is_out_of_the_way() -> None:
    done = blocker(12, "closed", "completed")
    dropped = blocker(13, "closed", "not_planned")
    double = blocker(14, "closed", "duplicate")
    silent = blocker(15, "closed")
    far = blocker(16, place=OTHER)
    assert reasons(child(3, done)) == ["ready"]
    assert reasons(child(3, done, blocker(12), blocker(15))) == ["blocked:#12,#15"]
    assert reasons(child(3, dropped, double, silent, far)) == [
        "blocked:#13(not-planned),#14(duplicate),#15(closed),octo/other#16"
    ]
    by = ("not-planned",)
    assert reasons(child(3, done), by=by) == ["ready"]
    assert reasons(child(3, dropped), by=by) == ["ready"]
    assert reasons(child(3, double), by=by) == ["blocked:#14(duplicate)"]
    assert reasons(child(3, dropped, double, silent), by=("any",)) == ["ready"]
    assert reasons(child(3, far), by=("any",)) == ["blocked:octo/other#16"]
    odd = blocker(12, "\x1b[2J")
    assert reasons(child(3, odd)) == ["blocked:#12"]


def test_a_reason_names_so_many_blockers() -> None:
    many = [blocker(number) for number in range(20, 20 + MAX_NAMED + 2)]
    [reason] = reasons(child(3, *many))
    assert reason.endswith("#39,and 2 more")


def test_those_that_wait_for_each_other_are_a_cycle() -> None:
    alone = child(1, blocker(1))
    pair = child(2, blocker(3)), child(3, blocker(2))
    behind = child(4, blocker(2))
    before = child(5)
    leads_in = child(6, blocker(5))
    children = (alone, *pair, behind, before, leads_in)
    assert reasons(*children) == [
        *("blocked:cycle", "blocked:cycle", "blocked:cycle"),
        *("blocked:#2", "ready", "blocked:#5"),
    ]
    assert cycles(snapshot(*children)) == ((1,), (2, 3))


def test_a_closed_one_breaks_a_cycle() -> None:
    one = child(1, blocker(2, "closed", "not_planned"))
    two = child(2, blocker(1), state="closed", reason="not_planned")
    assert reasons(one, two) == ["blocked:#2(not-planned)", "closed:not-planned"]
    assert cycles(snapshot(one, two)) == ()


def test_a_long_cycle_is_found_and_nothing_calls_itself() -> None:
    count = 5000
    ring = [child(n, blocker(n % count + 1)) for n in range(1, count + 1)]
    assert set(reasons(*ring)) == {"blocked:cycle"}
    assert set(reasons(*ring[:-1])) == {f"blocked:#{n}" for n in range(2, count + 1)}


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    numbers = draw(st.lists(st.integers(1, 9), unique=True, max_size=9))
    states = {
        number: draw(
            st.sampled_from(
                [("open", None), ("closed", "completed"), ("closed", "not_planned")]
            )
        )
        for number in range(1, 12)
    }
    children = []
    for number in numbers:
        waits = draw(st.lists(st.integers(1, 11), unique=True, max_size=4))
        children.append(
            child(
                number,
                *(blocker(each, *states[each]) for each in sorted(waits)),
                state=states[number][0],
                reason=states[number][1],
                pull_request=draw(st.integers(0, 9)) == 0,
                children=draw(st.sampled_from([0, 0, 0, 2])),
            )
        )
    return snapshot(*children)


def reaches_itself(made: Snapshot, start: int) -> bool:
    """The plain way to look for a cycle."""
    edges = {
        each.number: [b.at.number for b in each.blockers if b.reason != "completed"]
        for each in made.children
        if each.state == "open"
    }
    seen: set[int] = set()
    ahead = list(edges.get(start, ()))
    while ahead:
        number = ahead.pop()
        if number == start:
            return True
        if number not in seen:
            seen.add(number)
            ahead += edges.get(number, ())
    return False


@given(snapshots(), st.dictionaries(st.integers(1, 11), st.sampled_from(FACTS)))
def test_every_child_has_one_verdict_and_facts_only_take_away(
    made: Snapshot, facts: dict[int, str]
) -> None:
    bare, found = evaluate(made, {}), evaluate(made, facts)
    assert [each.number for each in found] == [each.number for each in made.children]
    assert [each.issue_id for each in found] == [each.id for each in made.children]
    for node, before, after in zip(made.children, bare, found, strict=True):
        fact = facts.get(node.number)
        ready = before.kind == "ready" and fact is None
        assert (after.kind == "ready") == ready
        if fact is None:
            assert after == before
        if before.kind == "blocked":
            circular = reaches_itself(made, node.number)
            assert (before.reason == "blocked:cycle") == circular
    told = counts(found)
    assert list(told) == list(KINDS)
    assert sum(told.values()) == len(made.children)
    assert told["ready"] == len(ready_set(found))


def test_the_groups_of_circles_come_in_their_order() -> None:
    edges = {5: [4], 4: [5, 9], 3: [3], 2: [1], 1: [0, 2], 0: [7], 7: []}
    assert circles(edges) == ((5, 4), (3,), (2, 1))
    assert circles({}) == ()
    assert circles({1: [], 2: [1, 3], 3: [1, 2]}) == ((2, 3),)
