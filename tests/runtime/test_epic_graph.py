"""The graph of an EPIC, read from a GitHub that changes and fails meanwhile."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from msgspec import structs
from trio.testing import wait_all_tasks_blocked

from forge_actors.domain.epic.graph import MAX_BLOCKERS, MAX_CHILDREN
from forge_actors.domain.epic.verdicts import evaluate
from forge_actors.domain.github.issues import PARALLEL, GitHubFailed
from forge_actors.domain.github.places import GITHUB, IssueAt, Place
from forge_actors.runtime.epic_graph import GitHubGraph
from forge_actors.testing.epic.graph_contract import refusal
from forge_actors.testing.epic.graph_people import WorldPeople
from forge_actors.testing.github import FakeGitHub
from tests.edges.github_kit import Bench, bench, world_of_two

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.github.issues import Issue, IssueText
    from forge_actors.testing.github.world import Repository, World

HOME = Place(GITHUB, "octo", "demo")
EPIC = IssueAt(HOME, 7)


class Scene:
    """A small EPIC: the second child waits for the first, and both for nobody else."""

    def __init__(self, made: Bench) -> None:
        self.made = made
        self.people = WorldPeople(made.world, made.demo)
        self.people.add(1)
        self.people.add(2, blocked_by=(1,))
        self.graph = GitHubGraph(made.reader, EPIC, wall=lambda: made.world.now)

    @property
    def asked(self) -> list[str]:
        """What was asked since this was asked last, behind the repository."""
        paths = [each.partition("/demo")[2] or "/" for each in self.made.troubles.paths]
        self.made.troubles.log.clear()
        return paths


async def test_a_snapshot_asks_no_more_than_it_must() -> None:
    async with bench() as made:
        scene = Scene(made)
        people, other = scene.people, made.other
        people.add(3, blocked_by=(1, 2))
        people.finish(3)
        people.add(4, blocked_by=(1,))
        people[4].pull_request = True
        far = made.world.issue(other, 5, parent=people.epic, blockers=(people[1],))
        first = await scene.graph.snapshot()
        list_ = "/issues/7/sub_issues"
        expected = ["/", "/issues/7", list_, "/issues/2/dependencies/blocked_by"]
        assert scene.asked == expected
        found = {each.issue_id: each.reason for each in evaluate(first, {})}
        assert found[far.id] == "unsupported:other-repository"
        assert found[people[4].id] == "unsupported:pull-request"
        made.troubles.log.clear()
        again = await scene.graph.snapshot()
        assert made.troubles.statuses == [304] * 4
        assert again == structs.replace(first, observed_at=again.observed_at)


async def test_one_admission_asks_twice() -> None:
    async with bench() as made:
        scene = Scene(made)
        snapshot = await scene.graph.snapshot()
        made.troubles.log.clear()
        assert (await scene.graph.reread(snapshot, 1)).unchanged
        assert scene.asked == ["/issues/1", "/issues/1/dependencies/blocked_by"]


async def test_four_questions_are_under_way_at_once() -> None:
    async with bench() as made:
        scene = Scene(made)
        for number in range(10, 20):
            scene.people.add(number, blocked_by=(1,))
        gate = trio.Event()
        made.troubles.fault("blocked_by$", times=99, gate=gate)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(scene.graph.snapshot)
            while made.troubles.under_way < PARALLEL:
                await trio.lowlevel.checkpoint()
            await wait_all_tasks_blocked(0.01)
            assert made.troubles.under_way == PARALLEL
            gate.set()
        assert len(scene.asked) == 3 + 11


#: What is answered, and what the refusal says of it.
ANSWERS: dict[str, dict[str, Any]] = {
    "unavailable": {"status": 502},
    "rate-limited": {"status": 429, "headers": {"retry-after": "99"}},
    "denied": {"status": 403, "body": {"message": "Resource not accessible"}},
    "not-found": {"status": 410, "body": {"message": "This issue was deleted"}},
    "malformed": {"body": {"id": "no"}},
}
READS = ("/demo$", "/issues/7$", "/sub_issues$", "/issues/2/dependencies")


@pytest.mark.parametrize("reason", ANSWERS)
async def test_any_read_that_fails_refuses_the_whole(reason: str) -> None:
    async with bench() as made:
        scene = Scene(made)
        for path in READS:
            await made.reader.close()  # what it knows of limits was another's
            made.troubles.faults.clear()
            made.troubles.fault(path, times=99, **ANSWERS[reason])
            error = await refusal(scene.graph.snapshot())
            lists = path in READS[2:] and reason == "not-found"
            assert error.reason == ("unsupported" if lists else reason), path
            assert error.transient == (reason in ("unavailable", "rate-limited"))
            assert error.wait == (99 if reason == "rate-limited" else None)
            doctor = "forge-actors doctor" in str(error)
            assert doctor == (reason in ("denied", "not-found") and not lists)


async def test_the_last_page_of_blockers_counts_like_the_first() -> None:
    async with bench() as made:
        scene = Scene(made)
        waits = scene.people[2]
        for number in range(100, 100 + MAX_BLOCKERS):
            made.world.block(waits, made.world.issue(made.other, number))
        made.troubles.fault("/repositories/.*/blocked_by$", times=99, status=500)
        assert (await refusal(scene.graph.snapshot())).reason == "unavailable"
        made.troubles.faults.clear()
        error = await refusal(scene.graph.snapshot())
        assert (error.reason, error.transient) == ("too-large", False)
        waits.blockers.pop()
        assert len((await scene.graph.snapshot()).children) == 2


async def test_an_epic_of_more_children_than_github_allows_is_refused() -> None:
    async with bench() as made:
        scene = Scene(made)
        for number in range(100, 98 + MAX_CHILDREN):
            scene.people.add(number)
        assert len((await scene.graph.snapshot()).children) == MAX_CHILDREN
        scene.people.add(999)
        made.troubles.log.clear()
        assert (await refusal(scene.graph.snapshot())).reason == "too-large"
        assert scene.asked == ["/", "/issues/7"]


async def test_what_changes_while_it_is_read_is_read_once_more() -> None:
    async with bench() as made:
        scene = Scene(made)
        made.troubles.after("/issues/7$", partial(scene.people.add, 3))
        snapshot = await scene.graph.snapshot()
        assert [child.number for child in snapshot.children] == [1, 2, 3]
        made.troubles.after("/sub_issues$", partial(scene.people.block, 2, 3))
        snapshot = await scene.graph.snapshot()
        assert len(snapshot.children[1].blockers) == 2
        made.troubles.after("/issues/1$", partial(scene.people.block, 1, 3))
        again = await scene.graph.reread(snapshot, 1)
        assert again.differences == ("blocker added: #3",)


@pytest.mark.parametrize("path", ["/sub_issues$", "/issues/2/dependencies"])
async def test_a_list_that_is_shorter_than_is_said_is_refused(path: str) -> None:
    async with bench() as made:
        scene = Scene(made)
        made.troubles.fault(path, times=99, body=[])
        error = await refusal(scene.graph.snapshot())
        assert (error.reason, error.transient) == ("inconsistent", True)
        assert re.search("says that it has [12] .*, and 0 are told", str(error))
        assert sum(bool(re.search(path, each)) for each in scene.asked) == 2


async def test_a_child_of_another_parent_is_refused() -> None:
    async with bench() as made:
        scene = Scene(made)
        other = made.world.issue(made.demo, 8)
        scene.people[1].parent = other.id
        error = await refusal(scene.graph.snapshot())
        assert error.reason == "inconsistent"
        assert "octo/demo#1 is a sub-issue of octo/demo#7 and says" in str(error)


async def test_a_renamed_repository_is_the_same_one() -> None:
    async with bench() as made:
        scene = Scene(made)
        before = await scene.graph.snapshot()
        made.world.rename(made.demo, "Renamed")
        again = await scene.graph.reread(before, 1)
        assert again.differences[0] == "place: octo/demo#1 -> octo/renamed#1"
        after = await scene.graph.snapshot()
        assert after.repository.id == before.repository.id
        assert after.place == structs.replace(HOME, name="renamed")
        assert [each.kind for each in evaluate(after, {})] == ["ready", "blocked"]
        assert (await scene.graph.reread(after, 1)).unchanged
        made.world.repository("octo", "demo")  # somebody else takes the old name
        assert await scene.graph.snapshot() == structs.replace(
            after, observed_at=(await scene.graph.snapshot()).observed_at
        )


@pytest.mark.parametrize("path", ["/demo$", "/issues/7$", "/sub_issues$"])
async def test_a_repository_that_is_renamed_meanwhile_is_one_place_all_the_same(
    path: str,
) -> None:
    async with bench() as made:
        scene = Scene(made)
        rename = partial(made.world.rename, made.demo, "renamed")
        made.troubles.after(path, rename)
        for _ in range(2):
            made_of = await scene.graph.snapshot()
            places = {child.place for child in made_of.children}
            assert places == {made_of.place} == {made_of.epic.at.place}
        assert made_of.place.name == "renamed"


async def test_another_repository_in_the_place_of_the_old_one_is_refused() -> None:
    async with bench() as made:
        scene = Scene(made)
        snapshot = await scene.graph.snapshot()
        made.world.rename(made.demo, "renamed")
        usurper = made.world.repository("octo", "demo")
        made.world.issue(usurper, 7, id=1)
        made.world.issue(usurper, 1, id=2)
        error = await refusal(scene.graph.snapshot())
        assert (error.reason, error.transient) == ("repository-changed", False)
        again = await scene.graph.reread(snapshot, 1)
        assert "#1 is another issue now" in again.differences[0]


async def test_an_epic_is_an_issue_and_stays_the_same_one() -> None:
    async with bench() as made:
        scene = Scene(made)
        scene.people.epic.pull_request = True
        assert (await refusal(scene.graph.epic())).reason == "epic-not-an-issue"
        scene.people.epic.pull_request = False
        await scene.graph.snapshot()
        made.world.close(scene.people.epic)
        assert not (await scene.graph.snapshot()).epic.open
        old = made.world.issues.pop(scene.people.epic.id)
        made.world.issue(made.demo, 7, id=1)
        error = await refusal(scene.graph.snapshot())
        assert error.reason == "not-found"
        assert f"its id was {old.id} and is 1" in str(error)


@pytest.mark.parametrize(
    ("happens", "told"),
    [
        (lambda w, c, o: w.transfer(c, o, 1), "not-found"),
        (lambda w, c, o: w.delete(c), "not-found"),
        (lambda w, c, o: setattr(c, "id", 5), "another issue now"),
        (lambda w, c, o: setattr(c, "parent", None), "parent: #7 -> none"),
        (lambda w, c, o: w.issue(o, 2, parent=c), "sub-issues: 0 -> 1"),
    ],
)
async def test_a_child_that_was_taken_away_is_noticed(
    happens: Callable[[World, Any, Repository], object], told: str
) -> None:
    async with bench() as made:
        scene = Scene(made)
        snapshot = await scene.graph.snapshot()
        happens(made.world, scene.people[1], made.other)
        if told == "not-found":
            assert (await refusal(scene.graph.reread(snapshot, 1))).reason == told
        else:
            [found] = (await scene.graph.reread(snapshot, 1)).differences
            assert told in found


class Terse(FakeGitHub):
    """One that tells the parent and the counts of no issue."""

    async def issue(self, at: IssueAt) -> Issue:
        return self._less(await super().issue(at))

    async def text(self, at: IssueAt) -> tuple[Issue, IssueText]:
        issue, text = await super().text(at)
        return self._less(issue), text

    async def sub_issues(self, at: IssueAt) -> tuple[Issue, ...]:
        return tuple(map(self._less, await super().sub_issues(at)))

    def _less(self, issue: Issue) -> Issue:
        return structs.replace(issue, parent=None, children=None, blockers=None)


async def test_a_server_may_tell_less_with_an_issue() -> None:
    world = world_of_two()
    demo, _ = world.repositories.values()
    people = WorldPeople(world, demo)
    people.add(1)
    people.add(2, blocked_by=(1,))
    reader = Terse(world)
    graph = GitHubGraph(reader, EPIC)
    snapshot = await graph.snapshot()
    assert [each.kind for each in evaluate(snapshot, {})] == ["ready", "blocked"]
    assert (await graph.reread(snapshot, 2)).unchanged
    people.give_away(2)
    [found] = (await graph.reread(snapshot, 2)).differences
    assert found == "parent: #7 -> #8"

    for number in range(100, 100 + MAX_CHILDREN):
        people.add(number)
    assert (await refusal(graph.snapshot())).reason == "too-large"


class Counting(FakeGitHub):
    """One that says how many of its reads are under way at once."""

    now = most = asked = 0
    broken = False

    async def blockers(self, at: IssueAt) -> tuple[Issue, ...]:
        self.asked += 1
        self.now += 1
        self.most = max(self.most, self.now)
        await trio.lowlevel.checkpoint()
        self.now -= 1
        if self.broken:
            raise GitHubFailed("denied", "no")
        return await super().blockers(at)


async def test_no_reader_is_asked_for_more_than_it_answers_at_once() -> None:
    world = world_of_two()
    demo, _ = world.repositories.values()
    people = WorldPeople(world, demo)
    people.add(1)
    for number in range(10, 30):
        people.add(number, blocked_by=(1,))
    reader = Counting(world)
    graph = GitHubGraph(reader, EPIC)
    await graph.snapshot()
    assert reader.most == PARALLEL
    assert len(reader.reads) == 3 + 20
    reader.asked, reader.broken = 0, True
    assert (await refusal(graph.snapshot())).reason == "denied"
    assert reader.asked <= 2 * PARALLEL  # what is not asked yet is not asked any more


async def test_a_shared_reader_is_left_open() -> None:
    reader = FakeGitHub(world_of_two())
    await GitHubGraph(reader, EPIC, shared=True).close()
    assert not reader.closed
    await GitHubGraph(reader, EPIC).close()
    assert reader.closed
