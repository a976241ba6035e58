"""What every graph of an EPIC has to do, as checks.

`open_` gives a graph of an EPIC without children, and people who change it.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, NamedTuple

from forge_actors.domain.epic.graph import IssueText, SnapshotRefused, node_digest
from forge_actors.domain.epic.records import Admission, EpicRef, RepositoryRef
from forge_actors.domain.epic.verdicts import evaluate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.epic.graph import Graph, RefusalReason, Snapshot
    from forge_actors.testing.epic.graph_people import People

    Open = Callable[[], AbstractAsyncContextManager["Ground"]]
    Check = Callable[[Open], Awaitable[None]]


class Ground(NamedTuple):
    graph: Graph
    people: People
    #: Have every read fail from now on, for the reason that is returned; and no more.
    spoil: Callable[[], RefusalReason]
    mend: Callable[[], None]


async def refusal(reading: Awaitable[object]) -> SnapshotRefused:
    """How it was refused."""
    refused: SnapshotRefused | None = None
    try:
        await reading
    except SnapshotRefused as error:
        refused = error
    assert refused is not None, "it was told"
    assert str(refused)
    return refused


def reasons(snapshot: Snapshot) -> dict[int, str]:
    return {each.number: each.reason for each in evaluate(snapshot, {})}


async def check_the_same_epic_has_the_same_ids(open_: Open) -> None:
    async with open_() as ground:
        home, root = await ground.graph.repository(), await ground.graph.epic()
        assert (await ground.graph.repository(), await ground.graph.epic()) == (
            *(home, root),
        )
        ground.people.add(1)
        made = await ground.graph.snapshot()
        assert (made.repository, made.epic.ref) == (home, root.ref)
        assert root.open
        assert root.at.place == home.place
        # What is written of it is as records want it.
        assert EpicRef(root.number, root.id) == root.ref
        RepositoryRef(home.id, home.place.owner, home.place.name)
        Admission(made.digest, node_digest(made.children[0]), made.observed_at)


async def check_a_snapshot_is_whole_and_in_the_order_of_people(open_: Open) -> None:
    async with open_() as ground:
        assert (await ground.graph.snapshot()).children == ()
        for number in (3, 1, 2):
            ground.people.add(number)
        ground.people.block(2, 3)
        ground.people.block(2, 1)
        made = await ground.graph.snapshot()
        assert [child.number for child in made.children] == [3, 1, 2]
        assert [child.title for child in made.children] == [
            *("Issue 3", "Issue 1", "Issue 2"),
        ]
        assert {(child.parent, child.parent_id) for child in made.children} == {
            (made.epic.at, made.epic.id)
        }
        last = made.child(2)
        assert last is not None
        assert [each.at.number for each in last.blockers] == [1, 3]
        assert [each.id for each in last.blockers] == [made.ids[1], made.ids[3]]
        assert len(set(made.ids.values())) == 3


async def check_an_unchanged_graph_has_the_same_digest(open_: Open) -> None:
    async with open_() as ground:
        ground.people.add(1)
        ground.people.add(2, blocked_by=(1,))
        made = await ground.graph.snapshot()
        ground.people.say(1, "Another title", "Another text.")
        again = await ground.graph.snapshot()
        assert again.digest == made.digest
        assert again.children[0].title == "Another title"


async def check_what_decides_about_a_child_changes_the_digest(open_: Open) -> None:
    async with open_() as ground:
        people = ground.people
        for number in (1, 2, 3):
            people.add(number)
        digests = [(await ground.graph.snapshot()).digest]
        changes: tuple[Callable[[], None], ...] = (
            lambda: people.block(2, 1),
            lambda: people.finish(1),
            lambda: people.finish(1, "not_planned"),
            lambda: people.give_away(3),
        )
        for change in changes:
            change()
            digests.append((await ground.graph.snapshot()).digest)
        assert len(set(digests)) == len(digests)


async def check_an_order_is_of_the_whole_and_of_no_child(open_: Open) -> None:
    async with open_() as ground:
        ground.people.add(1)
        ground.people.add(2)
        before = await ground.graph.snapshot()
        ground.people.order(2, 1)
        after = await ground.graph.snapshot()
        assert [child.number for child in after.children] == [2, 1]
        assert after.digest != before.digest
        assert set(map(node_digest, after.children)) == set(
            map(node_digest, before.children)
        )


async def check_a_child_reads_the_same_again(open_: Open) -> None:
    async with open_() as ground:
        ground.people.add(1)
        ground.people.add(2, blocked_by=(1,))
        ground.people.add(3, blocked_by=(1,))
        ground.people.finish(1)
        ground.people.finish(3)
        made = await ground.graph.snapshot()
        for child in made.children:
            again = await ground.graph.reread(made, child.number)
            assert (again.unchanged, again.node) == (True, child)
            assert again.node_digest == node_digest(child)
        ground.people.say(2, "Another title", "Another text.")
        assert (await ground.graph.reread(made, 2)).unchanged


async def check_a_child_that_changed_says_how(open_: Open) -> None:
    async with open_() as ground:
        people, graph = ground.people, ground.graph
        people.add(1)
        people.add(2, blocked_by=(1,))
        people.add(3)
        made = await graph.snapshot()
        people.finish(3)
        again = await graph.reread(made, 3)
        assert again.differences == ("state: open -> closed (completed)",)
        assert again.node_digest == node_digest(again.node)
        people.finish(1, "not_planned")
        people.block(2, 3)
        assert (await graph.reread(made, 2)).differences == (
            "blocker #1: open -> closed (not-planned)",
            "blocker added: #3",
        )
        people.unblock(2, 1)
        people.unblock(2, 3)
        found = await graph.reread(made, 2)
        assert found.differences == ("blocker removed: #1",)


async def check_a_child_that_is_none_any_more_is_not_unchanged(open_: Open) -> None:
    async with open_() as ground:
        ground.people.add(1)
        ground.people.add(2)
        made = await ground.graph.snapshot()
        ground.people.give_away(1)
        try:
            [told] = (await ground.graph.reread(made, 1)).differences
        except SnapshotRefused as error:
            told = error.reason
        assert told == "not-found" or told.startswith("parent: #")
        later = await ground.graph.snapshot()
        assert [child.number for child in later.children] == [2]
        assert (await refusal(ground.graph.reread(later, 1))).reason == "not-found"


async def check_what_a_child_says_is_told(open_: Open) -> None:
    async with open_() as ground:
        ground.people.add(1)
        made = await ground.graph.snapshot()
        ground.people.say(1, "A title", "Do this.\n\nThen that.")
        again = await ground.graph.reread(made, 1)
        assert again.text == IssueText("A title", "Do this.\n\nThen that.")
        assert again.unchanged


async def check_a_graph_that_cannot_be_read_is_refused_and_may_be_later(
    open_: Open,
) -> None:
    async with open_() as ground:
        ground.people.add(1)
        made = await ground.graph.snapshot()
        reason = ground.spoil()
        for read in (
            *(ground.graph.repository, ground.graph.epic, ground.graph.snapshot),
            lambda: ground.graph.reread(made, 1),
        ):
            assert (await refusal(read())).reason == reason
        ground.mend()
        assert (await ground.graph.snapshot()).digest == made.digest


async def check_a_diamond_opens_from_its_top(open_: Open) -> None:
    async with open_() as ground:
        people = ground.people
        people.add(1)
        people.add(2, blocked_by=(1,))
        people.add(3, blocked_by=(1,))
        people.add(4, blocked_by=(2, 3))
        ways = {1: "ready", 2: "blocked:#1", 3: "blocked:#1", 4: "blocked:#2,#3"}
        assert reasons(await ground.graph.snapshot()) == ways
        people.finish(1)
        ways |= {1: "closed:completed", 2: "ready", 3: "ready"}
        assert reasons(await ground.graph.snapshot()) == ways
        people.finish(2)
        people.finish(3, "not_planned")
        ways |= {2: "closed:completed", 3: "closed:not-planned"}
        ways |= {4: "blocked:#3(not-planned)"}
        assert reasons(await ground.graph.snapshot()) == ways
        people.reopen(1)
        people.block(1, 1)
        assert reasons(await ground.graph.snapshot())[1] == "blocked:cycle"


CHECKS: tuple[Check, ...] = (
    check_the_same_epic_has_the_same_ids,
    check_a_snapshot_is_whole_and_in_the_order_of_people,
    check_an_unchanged_graph_has_the_same_digest,
    check_what_decides_about_a_child_changes_the_digest,
    check_an_order_is_of_the_whole_and_of_no_child,
    check_a_child_reads_the_same_again,
    check_a_child_that_changed_says_how,
    check_a_child_that_is_none_any_more_is_not_unchanged,
    check_what_a_child_says_is_told,
    check_a_graph_that_cannot_be_read_is_refused_and_may_be_later,
    check_a_diamond_opens_from_its_top,
)
