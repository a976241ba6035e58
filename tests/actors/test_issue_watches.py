"""Schedules that wait for issues: each has its job, once, and none delays others."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import pytest
import trio

from forge_actors.actors.schedules_messages import Pause, Put, Resume
from forge_actors.domain.causes import Issues
from forge_actors.domain.errors import Refused
from forge_actors.domain.github.issues import GitHubFailed
from forge_actors.domain.schedules import MAX_CATCH_UP
from forge_actors.domain.triggers import Every, On
from forge_actors.domain.waited_for import waited_for
from tests.actors.issues_kit import DEMO, Watch, limited
from tests.actors.schedules_kit import made

pytestmark = pytest.mark.mock_clock


async def test_what_changes_after_the_first_question_has_a_job_that_is_told_of_it() -> (
    None
):
    async with Watch().open() as watch:
        people, demo = watch.github, watch.repository
        old = people.issue(demo, 1)
        await watch.add()
        people.issue(demo, 2, title="New \x1b[31mone")
        people.issue(demo, 3, pull_request=True)
        people.close(people.issue(demo, 4))
        await watch.later()
        [request] = watch.world.requests.values()
        assert request.env == {
            "FORGE_ISSUE_NUMBER": "2",
            "FORGE_ISSUE_URL": "https://github.com/octo/demo/issues/2",
            "FORGE_ISSUE_TITLE": "New one",
        }
        assert request.argv == ["true"]
        [told] = await watch.world.told()
        assert told.key.startswith("issue-2-")
        assert told.reason.startswith("issue octo/demo#2 changed at 2026-")
        await watch.ended()
        people.touch(old)
        await watch.later()
        assert watch.numbers == ["2", "1"]


async def test_while_nothing_changes_nothing_is_sent_and_nothing_saved() -> None:
    async with Watch().open() as watch:
        watch.github.issue(watch.repository, 1)
        await watch.add()
        await watch.later()
        commits, same = watch.world.store.commits, watch.reader.same
        for _ in range(5):
            await watch.later()
        assert watch.world.store.commits == commits
        assert watch.reader.same == same + 5


async def test_a_crowd_of_issues_has_its_jobs_one_after_the_other() -> None:
    async with Watch().open() as watch:
        watch.at_once = 2
        await watch.add()
        for number in range(1, 6):
            watch.github.issue(watch.repository, number)
        for _ in range(8):
            await watch.later()
            assert len(watch.numbers) <= 5
            await watch.ended()
        assert watch.numbers == ["1", "2", "3", "4", "5"]
        decided = watch.world.decided()
        assert decided == ["run"] * 5


async def test_more_than_may_wait_are_not_asked_for() -> None:
    async with Watch().open() as watch:
        watch.at_once = 100
        await watch.add()
        for number in range(1, MAX_CATCH_UP + 31):
            watch.github.issue(watch.repository, number)
        await watch.later()
        assert watch.numbers == ["1"]
        await watch.later()
        pending = (await watch.world.now()).progress.pending
        assert len(pending) == MAX_CATCH_UP
        asked = len(watch.reader.queries)
        await watch.later()
        assert len(watch.reader.queries) == asked
        for _ in range(MAX_CATCH_UP + 60):
            await watch.ended()
            await watch.later()
        assert watch.numbers == [str(n) for n in range(1, MAX_CATCH_UP + 31)]
        assert set(watch.world.decided()) == {"run"}


async def test_many_at_once_are_read_whole_whatever_happens_meanwhile() -> None:
    async with Watch().open() as watch:
        people, demo = watch.github, watch.repository
        watch.at_once = 100
        await watch.add()
        closed = [people.issue(demo, number) for number in range(1, 351)]
        for one in closed:
            one.state = "closed"
        for number in (1000, 1001):
            people.issue(demo, number)
        await watch.later()
        await watch.ended()
        assert watch.numbers == ["1000", "1001"]
        # All in the same second: only the next page tells of more.
        for number in range(2000, 2250):
            people.issue(demo, number)
        for issue in people.issues.values():
            if issue.number >= 2000:
                issue.updated, issue.state = people.now, "closed"
        people.issues[9000 + 2249].state = "open"
        await watch.later()
        await watch.ended()
        assert watch.numbers[2:] == ["2249"]


async def test_what_comes_behind_a_full_page_is_seen() -> None:
    async with Watch().open() as watch:
        people, demo = watch.github, watch.repository
        await watch.add()
        for number in range(1, 101):
            people.issue(demo, number)
        for issue in people.issues.values():
            issue.updated, issue.state = people.now, "closed"
        for _ in range(3):
            await watch.later()
        people.issue(demo, 500)
        await watch.later()
        assert watch.numbers == ["500"]


async def test_of_too_many_in_one_second_it_is_said_that_some_are_not_seen() -> None:
    async with Watch().open() as watch:
        people, demo = watch.github, watch.repository
        await watch.add()
        for number in range(1, 1300):
            people.issue(demo, number)
        for issue in people.issues.values():
            issue.updated, issue.state = people.now, "closed"
        said = []
        for _ in range(4):
            await watch.later()
            said.append((await watch.world.now()).progress.blind)
        assert any("not all that changed at 2026" in text for text in said)
        people.tick(5)
        people.issue(demo, 5000)
        for _ in range(3):
            await watch.later()
        assert watch.numbers == ["5000"]
        assert (await watch.world.now()).progress.blind == ""


async def test_labels_choose() -> None:
    async with Watch().open() as watch:
        await watch.add(labels=("bug", "ready"))
        issue = watch.github.issue(watch.repository, 1, labels=["bug"])
        await watch.later()
        assert watch.numbers == []
        watch.github.label(issue, "Bug", "Ready")
        await watch.later()
        assert watch.numbers == ["1"]


@pytest.mark.parametrize("when", ["submitting", "submitted", "saved", "told"])
async def test_a_crash_loses_no_issue_and_gives_none_a_second_job(when: str) -> None:
    watch = Watch()
    async with watch.open():
        await watch.add()
        watch.github.issue(watch.repository, 1)
        watch.github.issue(watch.repository, 2)
        if when == "submitting":
            watch.world.takes = 1.0
        elif when == "submitted":
            watch.world.store.hold("repo")
        await trio.sleep(60.0)
        if when != "told":
            await watch.settle()
    watch.world.store.crash()
    again = Watch(watch)
    async with again.open():
        for _ in range(4):
            await again.later()
            await again.ended()
        told = await again.world.told()
        runs = [one.key.split("-")[1] for one in told if one.decision == "run"]
        assert sorted(runs) == ["1", "2"]
        jobs = again.world.store.durable.requests
        assert len(jobs) == 2


async def test_what_a_pause_saw_is_gone_and_nobody_asks_meanwhile() -> None:
    async with Watch().open() as watch:
        await watch.add()
        mailbox = watch.world.mailbox
        await mailbox.ask(partial(Pause, "s", "why"))
        asked = len(watch.reader.queries)
        watch.github.issue(watch.repository, 1)
        await watch.later(600.0)
        assert len(watch.reader.queries) == asked
        await mailbox.ask(partial(Resume, "s"))
        await watch.settle()
        watch.github.issue(watch.repository, 2)
        await watch.later()
        assert watch.numbers == ["2"]


async def test_a_limit_is_waited_for_and_told() -> None:
    async with Watch().open() as watch:
        made = await watch.add()
        watch.github.issue(watch.repository, 1)
        watch.reader.failures.append(limited(1800.0))
        await watch.later()
        asked = len(watch.reader.queries)
        text = waited_for(await watch.world.now()) or ""
        assert "an open issue of octo/demo changes" in text
        assert "not seen now: GitHub is asked too much; asked again at 2026-" in text
        await watch.later(1700.0)
        assert len(watch.reader.queries) == asked
        await watch.later(200.0)
        assert watch.numbers == ["1"]
        schedule = await watch.world.now()
        assert schedule.progress.blind == ""
        assert schedule.id == made.id


async def test_what_does_not_pass_by_itself_is_asked_ever_more_rarely() -> None:
    async with Watch().open() as watch:
        await watch.add()
        watch.reader.failures += [
            GitHubFailed("denied", "GitHub answered 401") for _ in range(20)
        ]
        moments: list[float] = []
        while len(moments) < 10:
            before = len(watch.reader.queries)
            while len(watch.reader.queries) == before:
                await watch.later(60.0)
            moments.append(trio.current_time())
        gaps = [b - a for a, b in pairwise(moments)]
        assert gaps[:4] == [60.0, 120.0, 240.0, 480.0]
        assert max(gaps) == gaps[-1] == 3600.0
        assert "401" in (await watch.world.now()).progress.blind


async def test_a_reader_that_is_missing_or_broken_harms_its_schedule_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Watch().open() as watch:
        watch.unreadable = Refused("forge-actors[epic] is not installed")
        await watch.add()
        assert "[epic]" in (await watch.world.now()).progress.blind
        watch.unreadable, watch.reader.bug = None, ValueError("a bug")
        await watch.later(120.0)
        assert "ValueError: a bug" in (await watch.world.now()).progress.blind
        assert "issues cannot be asked for schedule s" in caplog.text
        watch.reader.bug = None
        await watch.later(600.0)
        watch.github.issue(watch.repository, 1)
        await watch.later()
        assert watch.numbers == ["1"]


async def test_a_slow_github_delays_no_other_schedule() -> None:
    async with Watch().open() as watch:
        for number in range(6):
            await watch.add(f"slow{number}", every=30.0)
        watch.reader.takes = 1e6
        await watch.world.add("quick", Every(10.0))
        started = watch.world.clock.wall()
        for _ in range(12):
            await watch.later(10.0)
            await watch.ended()
        times = [one.decided - started for one in await watch.world.told("quick")]
        assert times == [10.0 * turn for turn in range(1, 13)]
        assert watch.reader.most == 4
        await watch.later(300.0)
        texts = [(await watch.world.now(f"slow{n}")).progress.blind for n in range(6)]
        assert all("took longer than 120 s" in text for text in texts[:4])


async def test_it_is_asked_as_often_as_github_wants_at_most() -> None:
    async with Watch().open() as watch:
        watch.reader.pace = 300.0
        await watch.add(every=30.0)
        await watch.later(30.0)  # the first after the beginning
        asked = len(watch.reader.queries)
        await watch.later(299.0)
        assert len(watch.reader.queries) == asked
        await watch.later(1.0)
        assert len(watch.reader.queries) == asked + 1


async def test_an_answer_for_what_was_changed_meanwhile_does_not_count() -> None:
    async with Watch().open() as watch:
        await watch.add()
        watch.github.issue(watch.repository, 1)
        watch.reader.takes = 10.0
        await watch.later(60.0)
        assert watch.reader.under_way == 1
        await watch.world.mailbox.ask(partial(Pause, "s", "why"))
        await watch.world.mailbox.ask(partial(Resume, "s"))
        await watch.later(200.0)
        assert watch.numbers == []
        watch.github.issue(watch.repository, 2)
        await watch.later(200.0)
        assert watch.numbers == ["2"]


async def test_another_interval_goes_on_from_where_it_was() -> None:
    async with Watch().open() as watch:
        await watch.add()
        watch.github.issue(watch.repository, 1)
        definition = made("s", On(Issues(DEMO, (), 600.0)), overlap="queue")
        await watch.world.mailbox.ask(partial(Put, definition, 0))
        await watch.settle()
        assert watch.numbers == ["1"]
        asked = len(watch.reader.queries)
        await watch.later(599.0)
        assert len(watch.reader.queries) == asked
        await watch.later(1.0)
        assert len(watch.reader.queries) == asked + 1


async def test_whatever_write_is_the_last_before_a_crash_each_issue_has_one_job() -> (
    None
):
    crashes = 0
    for last in range(1, 200):
        watch, writes = Watch(), 0
        store = watch.world.store
        save = store.save
        with trio.CancelScope() as scope:

            def saved(*args: Any, _last: int = last, **more: Any) -> Any:
                nonlocal writes
                writes += 1
                if writes == _last:
                    scope.cancel()
                return save(*args, **more)  # noqa: B023 - called within this turn

            async with watch.open():
                await watch.add()
                store.save = saved  # type: ignore[method-assign]
                for number in (1, 2, 3):
                    watch.github.issue(watch.repository, number)
                for _ in range(6):
                    await watch.later()
                    await watch.ended()
        if not scope.cancelled_caught:
            break
        crashes += 1
        store.save = save  # type: ignore[method-assign]
        store.crash()
        again = Watch(watch)
        async with again.open():
            for _ in range(6):
                await again.later()
                await again.ended()
            told = await again.world.told()
            runs = [one.key for one in told if one.decision == "run"]
            numbers = sorted(key.split("-")[1] for key in runs)
            assert numbers == ["1", "2", "3"], last
            assert len(again.world.store.durable.requests) == 3, last
    assert crashes > 10
