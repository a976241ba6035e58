"""Reading the event log: its filters, its pages, and waiting for what comes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.client import offline_events
from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.events import EventQuery, EventView
from forge_actors.runtime import event_log
from tests.runtime.control_kit import Case, controlled

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "ghp_" + "a1B2" * 9


async def found(case: Case, **query: Any) -> list[EventView]:
    page = await case.control.events(EventQuery(**query), wait=False)
    return page.events


async def fill(case: Case) -> list[str]:
    """Three jobs in two repositories: two that succeed and one that fails."""
    await case.add("other")
    jobs = [
        await case.submit(name="one"),
        await case.submit("other", "sh", "-c", f"echo {SECRET} >&2; exit 1"),
        await case.submit("other"),
    ]
    await case.control.wait(jobs)
    return jobs


@pytest.mark.parametrize("at_once", [1, 3, 2000])
async def test_each_filter_leaves_what_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(event_log, "LOOKED_AT_ONCE", at_once)
    async with controlled(tmp_path) as case:
        one, two, three = await fill(case)
        whole = await found(case, limit=10_000)
        assert [event.seq for event in whole] == list(range(1, len(whole) + 1))
        for filters, wanted in (
            ({"job": (one[-6:],)}, [e for e in whole if e.job == one]),
            ({"job": (two, three)}, [e for e in whole if e.job in (two, three)]),
            ({"repo": ("other",)}, [e for e in whole if e.repo == "other"]),
            (
                {"repo": (str(tmp_path / "app"), "other"), "kind": ("job_failed",)},
                [e for e in whole if e.kind == "job_failed"],
            ),
            ({"after": 5}, whole[5:]),
            ({"after": 5, "limit": 3}, whole[5:8]),
            ({"newest": True, "limit": 4}, whole[-4:]),
            (
                {"newest": True, "limit": 2, "repo": ("app",)},
                [e for e in whole if e.repo == "app"][-2:],
            ),
            ({"repo": ("app",), "job": (two,)}, []),
        ):
            assert await found(case, **{"limit": 10_000, **filters}) == wanted, filters
        assert {event.job_name for event in whole if event.job == one} == {"one"}
        [failed] = await found(case, kind=("job_failed",))
        assert SECRET not in str(failed.data)
        assert "[redacted]" in str(failed.data)


async def test_since_begins_at_a_moment(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await fill(case)
        events = case.control._store.events(0, 10_000)
        for event in events:
            wanted = [other.seq for other in events if other.at >= event.at]
            seen = await found(case, since=event.at, limit=10_000)
            assert [view.seq for view in seen] == wanted
        assert await found(case, since=events[-1].at + 1) == []
        assert len(await found(case, since="1h", limit=10_000)) == len(events)
        assert await found(case, since="9999-01-01T00:00:00Z") == []
        with pytest.raises(InvalidInput, match="since: 'today' is neither"):
            await found(case, since="today")


async def test_pages_go_on_behind_each_other(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await fill(case)
        whole = await found(case, repo=("other",), limit=10_000)
        query = EventQuery(repo=("other",), limit=2)
        seen: list[EventView] = []
        while True:
            page = await case.control.events(query, wait=False)
            seen += page.events
            query = page.next
            if len(page.events) < 2:
                break
        assert seen == whole
        assert query.after == case.control.last_event


async def test_a_wait_ends_with_the_next_event_that_fits(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await fill(case)
        pages = []

        async def wait() -> None:
            query = EventQuery(kind=("repository_disabled",), repo=("other",))
            pages.append(await case.control.events(query, wait=True))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await case.control.enable_repository("app", enabled=False)
            await case.control.wait([await case.submit("other")])
            assert not pages
            await case.control.enable_repository("other", enabled=False)
        [event] = pages[0].events
        assert (event.kind, event.repo) == ("repository_disabled", "other")


async def test_whoever_waits_learns_of_the_end_of_the_runtime(tmp_path: Path) -> None:
    ends = []
    async with trio.open_nursery() as nursery:
        async with controlled(tmp_path) as case:

            async def wait() -> None:
                query = EventQuery(kind=("pressure_began",))
                page = await case.control.events(query, wait=True)
                ends.append(page.events)

            for _ in range(3):
                nursery.start_soon(wait)
            await trio.testing.wait_all_tasks_blocked()
        await trio.testing.wait_all_tasks_blocked()
    assert ends == [[], [], []]


async def test_a_removed_repository_still_has_its_history(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.control.wait([await case.submit()])
        before = await found(case, repo=("app",))
        await case.control.remove_repository("app")
        after = await found(case, repo=("app",))
        assert after[:-1] == before
        assert after[-1].kind == "repository_removed"
        by_id = await found(case, repo=(str(before[0].repo_id),))
        assert by_id == after


async def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await fill(case)
        with pytest.raises(InvalidInput, match="did you mean 'job_failed'"):
            await found(case, kind=("job_faild",))
        with pytest.raises(NotFound, match="did you mean 'other'"):
            await found(case, repo=("othr",))
        with pytest.raises(NotFound, match="is no job id"):
            await found(case, job=("x",))
        with pytest.raises(Refused, match="could be any of"):
            await found(case, job=(case.control._store.events(0, 99)[-1].job[:4],))


async def test_a_home_that_nothing_serves_tells_the_same_events(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    async with controlled(tmp_path) as case:
        one, two, _ = await fill(case)
        last = case.control.last_event
        queries = [
            EventQuery(limit=last),
            EventQuery(after=4, limit=5),
            EventQuery(after=0, limit=last, repo=("other",)),
            EventQuery(newest=True, limit=3, job=(one, two)),
            EventQuery(limit=9, kind=("job_failed", "repository_added"), since=1.0),
        ]
        told = [(await case.control.events(q, wait=False)).events for q in queries]
    for query, events in zip(queries, told, strict=True):
        fields = {**structs.asdict(query), "since": "1970-01-01T00:00:01Z"}
        asked: list[tuple[str, object]] = [
            (name, entry)
            for name, value in fields.items()
            for entry in (value if isinstance(value, tuple) else [value])
        ]
        lines = offline_events.lines(home, asked)
        found = [json.loads(line) for line in lines]
        expected = [json.loads(msgspec.json.encode(event)) for event in events]
        if query.limit == last:
            found = found[: len(expected)]  # it stopped since
        assert found == expected
    with pytest.raises(NotFound):
        offline_events.lines(home, [("limit", 1), ("repo", "nowhere")])
    with pytest.raises(InvalidInput, match="kind"):
        offline_events.lines(home, [("limit", 1), ("kind", "nothing")])
    with pytest.raises(InvalidInput, match="since"):
        offline_events.lines(home, [("limit", 1), ("since", "yesterday")])
