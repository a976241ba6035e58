"""What every reader of GitHub has to do, as checks.

`open_` gives a reader of a world in which there are two repositories, octo/demo and
octo/other, and what becomes of that world is the check's to say.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from forge_actors.domain.github.issues import (
    MAX_TEXT,
    ChangedQuery,
    GitHubFailed,
    IssueText,
)
from forge_actors.domain.github.places import GITHUB, IssueAt, Place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.github.issues import FailureKind, GitHub
    from forge_actors.testing.github.world import Repository, World

    Open = Callable[[], AbstractAsyncContextManager["Ground"]]
    Check = Callable[[Open], Awaitable[None]]

PLACE = Place(GITHUB, "octo", "demo")
OTHER = Place(GITHUB, "octo", "other")


class Ground(NamedTuple):
    reader: GitHub
    world: World
    demo: Repository
    other: Repository


def at(number: int, place: Place = PLACE) -> IssueAt:
    return IssueAt(place, number)


async def failure(reading: Awaitable[object]) -> FailureKind:
    """What kind of failure it came to."""
    failed: GitHubFailed | None = None
    try:
        await reading
    except GitHubFailed as error:
        failed = error
    assert failed is not None, "it was told"
    assert str(failed)
    return failed.kind


async def check_a_repository_has_an_id_that_its_name_does_not_change(
    open_: Open,
) -> None:
    async with open_() as ground:
        before = await ground.reader.repository(Place(GITHUB, "octo", "demo"))
        assert (before.id, before.place) == (ground.demo.id, PLACE)
        assert (before.archived, before.has_issues) == (False, True)
        ground.world.rename(ground.demo, "Renamed")
        after = await ground.reader.repository(PLACE)
        assert after == structs.replace(before, place=Place(GITHUB, "octo", "renamed"))
        missing = Place(GITHUB, "octo", "nothing")
        assert await failure(ground.reader.repository(missing)) == "not-found"


async def check_an_issue_is_told_with_what_counts(open_: Open) -> None:
    async with open_() as ground:
        world, demo = ground.world, ground.demo
        epic = world.issue(demo, 7)
        first = world.issue(demo, 12, title="First", labels=["bug", "Ready"])
        world.adopt(epic, first)
        world.block(first, world.issue(ground.other, 3))
        told = await ground.reader.issue(at(12))
        assert (told.id, told.at, told.state, told.reason) == (
            *(first.id, at(12), "open", None),
        )
        assert (told.title, told.labels) == ("First", ("bug", "Ready"))
        assert (told.parent, told.children, told.blockers) == (at(7), 0, 1)
        assert told.open
        assert not told.pull_request
        assert told.node_id
        assert (await ground.reader.issue(at(7))).children == 1


async def check_what_an_issue_says_is_told_to_those_who_ask(open_: Open) -> None:
    async with open_() as ground:
        world, demo, reader = ground.world, ground.demo, ground.reader
        said = world.issue(demo, 1, title="First", body="Do it.\n\x1b[31mNow.")
        world.issue(demo, 2)
        long = world.issue(demo, 3, body="x" * (MAX_TEXT + 1))
        world.transfer(long, demo, 4)
        issue, text = await reader.text(at(1))
        assert text == IssueText("First", said.body or "")
        assert issue == await reader.issue(at(1))
        assert (await reader.text(at(2)))[1].body == ""
        assert len((await reader.text(at(4)))[1].body) == MAX_TEXT
        for number in (3, 5):
            assert await failure(reader.text(at(number))) == "not-found"
        world.rename(demo, "renamed")
        assert (await reader.text(at(1)))[1].title == "First"


async def check_what_closes_an_issue_is_told(open_: Open) -> None:
    async with open_() as ground:
        issue = ground.world.issue(ground.demo, 1)
        opened = await ground.reader.issue(at(1))
        ground.world.close(issue, "not_planned")
        closed = await ground.reader.issue(at(1))
        assert (closed.open, closed.reason) == (False, "not_planned")
        assert closed.updated > opened.updated


async def check_a_pull_request_is_told_apart(open_: Open) -> None:
    async with open_() as ground:
        ground.world.issue(ground.demo, 2, pull_request=True)
        assert (await ground.reader.issue(at(2))).pull_request


async def check_what_is_not_there_is_not_found(open_: Open) -> None:
    async with open_() as ground:
        gone = ground.world.issue(ground.demo, 4)
        ground.world.delete(gone)
        reader = ground.reader
        for number in (4, 5):
            assert await failure(reader.issue(at(number))) == "not-found"
            assert await failure(reader.sub_issues(at(number))) == "not-found"
            assert await failure(reader.blockers(at(number))) == "not-found"
            assert await failure(reader.parent(at(number))) == "not-found"


async def check_an_issue_that_was_moved_away_is_not_found(open_: Open) -> None:
    async with open_() as ground:
        issue = ground.world.issue(ground.demo, 6)
        ground.world.transfer(issue, ground.other, 60)
        assert await failure(ground.reader.issue(at(6))) == "not-found"
        assert (await ground.reader.issue(at(60, OTHER))).id == issue.id


async def check_one_that_was_moved_keeps_its_number_and_is_not_found(
    open_: Open,
) -> None:
    async with open_() as ground:
        ground.world.transfer(ground.world.issue(ground.demo, 6), ground.other, 6)
        assert await failure(ground.reader.issue(at(6))) == "not-found"


async def check_an_issue_of_a_renamed_repository_is_found(open_: Open) -> None:
    async with open_() as ground:
        issue = ground.world.issue(ground.demo, 6)
        ground.world.rename(ground.demo, "renamed")
        found = await ground.reader.issue(at(6))
        assert (found.id, found.at.place.name) == (issue.id, "renamed")


async def check_sub_issues_come_whole_and_in_their_order(open_: Open) -> None:
    async with open_() as ground:
        world, demo = ground.world, ground.demo
        epic = world.issue(demo, 1)
        numbers = [*range(400, 300, -1), *range(20, 60), *range(600, 670)]
        for number in numbers:
            world.issue(demo, number, parent=epic)
        elsewhere = world.issue(ground.other, 5, parent=epic)
        world.close(world.issues[epic.children[0]])
        told = await ground.reader.sub_issues(at(1))
        assert [each.at for each in told] == [
            *map(at, numbers),
            at(elsewhere.number, OTHER),
        ]
        assert [each.open for each in told[:2]] == [False, True]
        assert {each.parent for each in told} == {at(1)}
        assert await ground.reader.sub_issues(at(20)) == ()


async def check_blockers_are_told_wherever_they_are(open_: Open) -> None:
    async with open_() as ground:
        world, demo = ground.world, ground.demo
        near, far = world.issue(demo, 1), world.issue(ground.other, 9)
        issue = world.issue(demo, 2, blockers=(near, far))
        world.close(near)
        told = await ground.reader.blockers(at(2))
        assert [(each.at, each.open) for each in told] == [
            *((at(1), False), (at(9, OTHER), True)),
        ]
        world.block(issue, world.issue(demo, 3))
        assert len(await ground.reader.blockers(at(2))) == 3


async def check_a_parent_is_told_where_there_is_one(open_: Open) -> None:
    async with open_() as ground:
        epic = ground.world.issue(ground.demo, 1)
        ground.world.issue(ground.demo, 2, parent=epic)
        parent = await ground.reader.parent(at(2))
        assert parent is not None
        assert parent.id == epic.id
        assert await ground.reader.parent(at(1)) is None


async def check_changes_come_in_their_order_and_only_once_asked_so(
    open_: Open,
) -> None:
    async with open_() as ground:
        world, demo, reader = ground.world, ground.demo, ground.reader
        made = [world.issue(demo, number) for number in (3, 1, 2)]
        world.close(made[0])
        query = ChangedQuery()
        page = await reader.changed(PLACE, query)
        assert [each.at.number for each in page.issues] == [1, 2, 3]
        assert [each.open for each in page.issues] == [True, True, False]
        assert page.following is None
        since = page.issues[1].updated
        later = await reader.changed(PLACE, ChangedQuery(since=since))
        assert [each.at.number for each in later.issues] == [2, 3]
        last = await reader.changed(PLACE, ChangedQuery(count=1, backwards=True))
        assert [each.at.number for each in last.issues] == [3]


async def check_an_unchanged_answer_is_not_told_again(open_: Open) -> None:
    async with open_() as ground:
        issue = ground.world.issue(ground.demo, 1)
        page = await ground.reader.changed(PLACE, ChangedQuery())
        assert page.etag is not None
        again = await ground.reader.changed(PLACE, ChangedQuery(etag=page.etag))
        assert (again.same, again.issues) == (True, ())
        ground.world.touch(issue)
        again = await ground.reader.changed(PLACE, ChangedQuery(etag=page.etag))
        assert (again.same, len(again.issues)) == (False, 1)


async def check_the_rest_of_changes_is_where_the_first_part_says(open_: Open) -> None:
    async with open_() as ground:
        for number in range(1, 6):
            ground.world.issue(ground.demo, number)
        first = await ground.reader.changed(PLACE, ChangedQuery(count=3))
        assert [each.at.number for each in first.issues] == [1, 2, 3]
        assert first.following is not None
        query = ChangedQuery(count=3, link=first.following)
        rest = await ground.reader.changed(PLACE, query)
        assert [each.at.number for each in rest.issues] == [4, 5]
        assert rest.following is None


async def check_changes_are_of_all_the_labels(open_: Open) -> None:
    async with open_() as ground:
        world, demo = ground.world, ground.demo
        world.issue(demo, 1, labels=["Bug", "ready"])
        world.issue(demo, 2, labels=["bug"])
        query = ChangedQuery(labels=("bug", "READY"))
        page = await ground.reader.changed(PLACE, query)
        assert [each.at.number for each in page.issues] == [1]


async def check_a_closed_reader_can_be_used_again(open_: Open) -> None:
    async with open_() as ground:
        ground.world.issue(ground.demo, 1)
        before = await ground.reader.issue(at(1))
        await ground.reader.close()
        assert await ground.reader.issue(at(1)) == before


CHECKS: tuple[Check, ...] = (
    check_a_repository_has_an_id_that_its_name_does_not_change,
    check_an_issue_is_told_with_what_counts,
    check_what_an_issue_says_is_told_to_those_who_ask,
    check_what_closes_an_issue_is_told,
    check_a_pull_request_is_told_apart,
    check_what_is_not_there_is_not_found,
    check_an_issue_that_was_moved_away_is_not_found,
    check_one_that_was_moved_keeps_its_number_and_is_not_found,
    check_an_issue_of_a_renamed_repository_is_found,
    check_sub_issues_come_whole_and_in_their_order,
    check_blockers_are_told_wherever_they_are,
    check_a_parent_is_told_where_there_is_one,
    check_changes_come_in_their_order_and_only_once_asked_so,
    check_an_unchanged_answer_is_not_told_again,
    check_the_rest_of_changes_is_where_the_first_part_says,
    check_changes_are_of_all_the_labels,
    check_a_closed_reader_can_be_used_again,
)
