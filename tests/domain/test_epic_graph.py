"""The graph of an EPIC as a value: digests, and what differs."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forge_actors.domain.epic.graph import (
    MAX_DIFFERENCES,
    REFUSAL_REASONS,
    BlockerNode,
    ChildNode,
    EpicNode,
    RepositoryNode,
    Snapshot,
    SnapshotRefused,
    differences,
    node_digest,
    snapshot_of,
    word,
)
from forge_actors.domain.github.places import GITHUB, IssueAt, Place

HOME = Place(GITHUB, "octo", "demo")
OTHER = Place(GITHUB, "octo", "other")
EPIC = EpicNode(9007, IssueAt(HOME, 7), "open")
FIRST = BlockerNode(IssueAt(HOME, 12), 9012, "closed", "completed")
SECOND = BlockerNode(IssueAt(OTHER, 3), 10003, "open")
NODE = ChildNode(
    9013,
    IssueAt(HOME, 13),
    "open",
    parent=EPIC.at,
    parent_id=EPIC.id,
    blockers=(FIRST, SECOND),
    title="A title",
)


def snapshot(*children: ChildNode, at: str = "2026-01-01T00:00:00Z") -> Snapshot:
    return snapshot_of(at, RepositoryNode(101, HOME), EPIC, children)


def test_the_digest_of_a_child_is_of_what_decides_about_it() -> None:
    told = {
        "id": 9013,
        "number": 13,
        "repository": "octo/demo",
        "pull_request": False,
        "state": "open",
        "state_reason": None,
        "parent": 9007,
        "blockers": [
            ["octo/demo", 12, 9012, "closed", "completed"],
            ["octo/other", 3, 10003, "open", None],
        ],
    }
    text = json.dumps(told, sort_keys=True, separators=(",", ":"))
    digest = node_digest(NODE)
    assert digest == f"sha256:{sha256(text.encode()).hexdigest()}"
    assert node_digest(structs.replace(NODE, blockers=(SECOND, FIRST))) == digest
    assert node_digest(structs.replace(NODE, title="Another", children=2)) == digest


#: A change of a child, and how people are told of it.
CHANGES: list[tuple[dict[str, object], str]] = [
    (
        {"state": "closed", "reason": "not_planned"},
        "state: open -> closed (not-planned)",
    ),
    ({"state": "\x1b[31m"}, "state: open -> unknown"),
    ({"reason": "reopened"}, "state: open -> open (reopened)"),
    ({"id": 5}, "octo/demo#13 is another issue now (id 9013 -> 5)"),
    ({"at": IssueAt(OTHER, 13)}, "place: octo/demo#13 -> octo/other#13"),
    ({"pull_request": True}, "kind: issue -> pull request"),
    ({"parent": IssueAt(HOME, 8), "parent_id": None}, "parent: #7 -> #8"),
    ({"parent": IssueAt(OTHER, 8), "parent_id": None}, "parent: #7 -> octo/other#8"),
    ({"parent": None, "parent_id": None}, "parent: #7 -> none"),
    ({"blockers": (SECOND,)}, "blocker removed: #12"),
    (
        {"blockers": (FIRST, structs.replace(SECOND, id=4))},
        "blocker octo/other#3 is another issue now",
    ),
    (
        {"blockers": (FIRST, structs.replace(SECOND, state="closed"))},
        "blocker octo/other#3: open -> closed",
    ),
    (
        {"blockers": (structs.replace(FIRST, reason="duplicate"), SECOND)},
        "blocker #12: closed (completed) -> closed (duplicate)",
    ),
    (
        {"blockers": (*NODE.blockers, BlockerNode(IssueAt(HOME, 1), 1, "open"))},
        "blocker added: #1",
    ),
]


@pytest.mark.parametrize(("fields", "told"), CHANGES)
def test_each_change_that_counts_is_told_and_in_the_digests(
    fields: dict[str, object], told: str
) -> None:
    changed = structs.replace(NODE, **fields)
    found = differences(NODE, changed)
    if "at" in fields:  # what was `#12` is called by its whole name from there
        assert found[0] == told
    else:
        assert found == (told,)
    assert differences(changed, changed) == ()
    assert node_digest(changed) != node_digest(NODE)
    assert snapshot(changed).digest != snapshot(NODE).digest


def test_sub_issues_of_its_own_are_told_though_no_digest_has_them() -> None:
    nested = structs.replace(NODE, children=3)
    assert differences(NODE, nested) == ("sub-issues: 0 -> 3",)
    assert differences(nested, structs.replace(nested, children=4)) == ()


def test_no_more_differences_are_told_than_can_be_read() -> None:
    many = tuple(BlockerNode(IssueAt(HOME, n), n, "open") for n in range(1, 60))
    found = differences(structs.replace(NODE, blockers=()), many_blocked(many))
    assert len(found) == MAX_DIFFERENCES
    assert found[-1] == "and 40 more differences"


def many_blocked(blockers: tuple[BlockerNode, ...]) -> ChildNode:
    return structs.replace(NODE, blockers=blockers)


def test_the_digest_of_a_snapshot_knows_the_order_of_the_children() -> None:
    other = structs.replace(NODE, id=9014, at=IssueAt(HOME, 14))
    assert snapshot(NODE, other).digest != snapshot(other, NODE).digest
    later = snapshot(NODE, at="2026-01-02T00:00:00Z")
    assert later.digest == snapshot(NODE).digest
    named = structs.replace(NODE, title="A comment changes nothing either")
    assert snapshot(named).digest == snapshot(NODE).digest


def test_a_digest_is_of_this_epic_of_this_repository() -> None:
    digests = {
        snapshot_of("t", RepositoryNode(id_, HOME), epic, [NODE]).digest
        for id_ in (101, 102)
        for epic in (
            EPIC,
            structs.replace(EPIC, id=1),
            structs.replace(EPIC, at=IssueAt(HOME, 8)),
        )
    }
    assert len(digests) == 6
    closed = snapshot_of(
        "t", RepositoryNode(101, HOME), structs.replace(EPIC, state="closed"), [NODE]
    )
    assert closed.digest in digests
    assert not closed.epic.open


def test_numbers_are_those_of_the_repository_itself() -> None:
    stranger = structs.replace(NODE, at=IssueAt(OTHER, 13), id=1)
    made = snapshot(stranger, NODE)
    assert made.child(13) == NODE
    assert made.child(14) is None
    assert made.ids == {13: 9013}


NODES = st.builds(
    ChildNode,
    id=st.integers(1, 3),
    at=st.builds(IssueAt, st.sampled_from([HOME, OTHER]), st.integers(1, 3)),
    state=st.sampled_from(["open", "closed"]),
    reason=st.sampled_from([None, "completed", "reopened"]),
    pull_request=st.booleans(),
    parent=st.just(EPIC.at),
    parent_id=st.just(EPIC.id),
    blockers=st.sets(
        st.builds(
            BlockerNode,
            at=st.builds(IssueAt, st.sampled_from([HOME, OTHER]), st.integers(1, 3)),
            id=st.integers(1, 2),
            state=st.sampled_from(["open", "closed"]),
        ),
        max_size=3,
    )
    .map(lambda found: {each.at: each for each in found})
    .map(lambda found: tuple(found.values())),
)


@given(NODES, NODES)
def test_two_children_have_one_digest_if_nothing_differs(
    one: ChildNode, other: ChildNode
) -> None:
    same = node_digest(one) == node_digest(other)
    assert same == (differences(one, other) == ())


@pytest.mark.parametrize("reason", REFUSAL_REASONS)
def test_a_refusal_says_whether_it_may_pass(reason: str) -> None:
    error = SnapshotRefused(reason, "why", wait=3.0)  # type: ignore[arg-type]
    passing = ("unavailable", "rate-limited", "inconsistent")
    assert error.transient == (reason in passing)
    assert (str(error), error.wait) == ("why", 3.0)


def test_words_of_others_are_shown_only_where_they_are_harmless() -> None:
    assert word("not_planned") == "not-planned"
    for text in (None, "", "Not planned", "a\n", "x" * 41, "\x1b[2J"):
        assert word(text) is None
