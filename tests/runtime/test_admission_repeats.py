"""Admission: what is sent again, and what happened meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.domain.errors import NotFound, Refused, StoreFailed
from forge_actors.domain.requests import JobRequest

if TYPE_CHECKING:
    from pathlib import Path

from tests.runtime.admission_kit import admission, store_is_full

pytestmark = pytest.mark.mock_clock


async def test_the_history_says_where_a_job_came_from(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        first = await case.submit("true", origin="mcp")
        await case.submit("true", after=[first.id])
        events = case.store.events(0, 100)
        told = [(event.kind, event.data) for event in events if event.job]
        facts = {
            "reason": "accepted",
            "kind": "repository-command",
            "priority": "P2",
            "claims": [["write", "repo-content", "*", ""]],
        }
        behind = {**facts, "origin": "cli", "after": [first.id]}
        assert told == [
            ("job_queued", {**facts, "origin": "mcp"}),
            ("job_waiting_for_dependency", behind),
        ]


async def test_within_one_batch_a_request_id_and_a_unique_key_count_too(
    tmp_path: Path,
) -> None:
    async with admission(tmp_path) as case:
        same = JobRequest("app", ["true"], request_id="r")
        keyed = JobRequest("app", ["true"], unique="k")
        a, b, c, d = await case.admission.submit([same, same, keyed, keyed])
        assert (a.id, c.id) == (b.id, d.id)
        assert a.id != c.id
        with pytest.raises(Refused, match="request_id"):
            await case.admission.submit(
                [
                    JobRequest("app", ["true"], request_id="new"),
                    JobRequest("app", ["false"], request_id="new"),
                ]
            )


async def test_a_unique_key_is_one_in_its_repository(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        await case.add("other")
        requests = [JobRequest(repo, ["true"], unique="k") for repo in ("app", "other")]
        first = await case.admission.submit(requests)
        again = await case.admission.submit(requests)
        assert [entry.id for entry in first] == [entry.id for entry in again]
        assert len({entry.id for entry in first}) == 2


async def test_what_is_not_durable_is_not_acknowledged_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two callers send one request while the disk is full: both are told."""
    async with admission(tmp_path) as case:
        request = JobRequest("app", ["true"], request_id="r")
        results: list[object] = []

        async def submit() -> None:
            try:
                results.append(await case.admission.submit([request]))
            except StoreFailed as error:
                results.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(submit)
            nursery.start_soon(submit)
            while not case.store._moves:
                await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            case.store._hold_back(store_is_full())
        assert all(isinstance(entry, StoreFailed) for entry in results)


async def test_more_jobs_than_may_wait_are_refused_whole(tmp_path: Path) -> None:
    async with admission(tmp_path, limits={"queued_jobs": 3}) as case:
        await case.submit()
        with pytest.raises(Refused, match="1 jobs wait or run and 3 more"):
            await case.admission.submit([JobRequest("app", ["true"])] * 3)
        assert len(case.jobs()) == 1
        await case.admission.submit([JobRequest("app", ["true"])] * 2)
        with pytest.raises(Refused):
            await case.submit()


async def test_a_repository_removed_meanwhile_accepts_nothing(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        other = await case.add("other")
        case.git.delay = 5.0
        requests = [JobRequest("app", ["true"]), JobRequest(str(other), ["true"])]

        async def submit() -> None:
            with pytest.raises(NotFound):
                await case.admission.submit(requests)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(submit)
            await trio.testing.wait_all_tasks_blocked()
            await case.registry.remove(case.registry.named("app"))
        assert case.store.read("active_total") == [(0,)]


async def test_nothing_is_a_batch_of_nothing(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        assert await case.admission.submit([]) == []


async def test_a_full_disk_is_the_answer(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        case.store._hold_back(store_is_full())
        with pytest.raises(StoreFailed, match="full"):
            await case.submit()
        assert case.told == []
        await trio.sleep(5)
        await case.submit()
        assert len(case.told) == 1


async def test_a_key_stands_for_all_jobs_of_a_request(
    tmp_path: Path,
) -> None:
    def requests(*names: str) -> list[JobRequest]:
        return [JobRequest("app", ["make", name]) for name in names]

    async with admission(tmp_path) as case:
        submit = case.admission.submit
        first = await submit(requests("a", "b"), "key")
        again = await submit(requests("a", "b"), "key")
        assert [entry.id for entry in first] == [entry.id for entry in again]
        assert all(entry.existing for entry in again)
        for other in (("a",), ("a", "b", "c"), ("b", "a"), ("a", "x")):
            with pytest.raises(Refused):
                await submit(requests(*other), "key")
        assert len(case.jobs()) == 2
        # One of those that have a key of their own may be there already.
        unique = [JobRequest("app", ["make"], unique="u"), *requests("a")]
        [known] = await submit(unique[:1])
        for _ in range(2):
            found = await submit(
                [JobRequest("app", ["make"], unique="u"), *requests("a")], "other"
            )
            assert found[0].id == known.id
        assert len(case.jobs()) == 4
