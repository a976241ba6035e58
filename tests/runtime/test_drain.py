"""A drain: nothing new starts, what runs goes on to its end. Waiting for a state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import pytest
import trio
import trio.testing

from forge_actors.domain.errors import Refused, StoreFailed, Unavailable
from tests.runtime.control_kit import Case, controlled
from tests.runtime.kit import running

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


class Asker:
    """Waits for something in a task of its own."""

    def __init__(
        self, nursery: trio.Nursery, ask: Callable[[], Awaitable[None]]
    ) -> None:
        self.ended = False
        self.error: Exception | None = None
        self._ask = ask
        nursery.start_soon(self._run)

    async def _run(self) -> None:
        try:
            await self._ask()
        except Exception as error:  # noqa: BLE001 - told to the test
            self.error = error
        self.ended = True


async def kinds(case: Case) -> list[str]:
    events = case.control._store.events(0, 10_000)
    return [event.kind for event in events if event.kind.startswith("drain")]


async def test_a_drain_starts_nothing_and_waits_for_what_runs(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case, trio.open_nursery() as nursery:
        runs = [await case.hold(), await case.hold(name="long")]
        await case.control.drain()
        later = await case.submit()
        assert (await case.control.status())["draining"] is True
        why, waiting = await case.why(later)
        assert (why.state, waiting["kind"]) == ("queued", "pause")
        assert "the service is draining" in why.sentence
        assert "drain --cancel" in why.sentence
        asker = Asker(nursery, case.control.wait_drained)
        await case.end(runs[0])
        await trio.testing.wait_all_tasks_blocked()
        assert not asker.ended
        await case.end(runs[1])
        with trio.fail_after(30):
            while not asker.ended:
                await trio.lowlevel.checkpoint()
        assert asker.error is None
        assert (await case.control.job(later)).state == "queued"
        # Drained it stays, and nothing that comes starts either.
        await case.control.wait_drained()
        await case.control.undrain()
        assert (await case.control.wait([later]))[0].state == "succeeded"
        assert (await case.control.status())["draining"] is False
        assert await kinds(case) == ["drain_began", "drain_ended"]


async def test_a_drain_that_is_cancelled_tells_who_waits(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.hold()
        await case.control.drain()
        await case.control.drain()
        async with trio.open_nursery() as nursery:
            asker = Asker(nursery, case.control.wait_drained)
            await trio.testing.wait_all_tasks_blocked()
            await case.control.undrain()
        assert isinstance(asker.error, Refused)
        await case.control.undrain()
        assert (await case.control.job(job)).state == "running"
        assert await kinds(case) == ["drain_began", "drain_ended"]
        with pytest.raises(Refused, match="the drain was cancelled"):
            await case.control.wait_drained()


async def test_a_job_that_waits_for_its_next_attempt_is_no_hindrance(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        gate = tmp_path / "gate"
        script = f"until test -e {gate}; do sleep 0.02; done; exit 1"
        job = await case.submit(
            "app", "sh", "-c", script, replay="always", max_attempts=2
        )
        async for event in case.runtime.events(after=0):
            if event.kind == "job_running":
                break
        await case.control.drain()
        async with trio.open_nursery() as nursery:
            asker = Asker(nursery, case.control.wait_drained)
            gate.touch()
        assert asker.error is None
        view = await case.control.job(job)
        assert (view.state, view.attempt) == ("waiting_for_retry", 1)


async def test_a_drain_ends_with_its_runtime(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.control.drain()
        job = await case.submit()
    async with running(tmp_path / "home") as runtime:
        assert (await runtime.status())["draining"] is False
        assert (await runtime.control.wait([job]))[0].state == "succeeded"


async def test_idle_is_when_nothing_waits_or_runs(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case, trio.open_nursery() as nursery:
        await case.control.wait_idle()
        first = await case.hold()
        second = await case.submit(after=[first])
        asker = Asker(nursery, case.control.wait_idle)
        third = await case.hold()
        await case.end(first, second)
        await trio.testing.wait_all_tasks_blocked()
        assert not asker.ended
        await case.end(third)
        await case.control.wait_idle()
        await trio.testing.wait_all_tasks_blocked()
        assert (asker.ended, asker.error) == (True, None)


async def test_ready_is_when_something_can_be_saved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forge_actors.edges.sqlite.store.RETRY_SECONDS", 0.01)
    async with controlled(tmp_path) as case, trio.open_nursery() as nursery:
        await case.control.wait_ready()
        store = case.control._store
        end = store._end_transaction
        full = True

        def fill() -> None:
            if full:
                raise apsw.FullError("database or disk is full")
            end()

        monkeypatch.setattr(store, "_end_transaction", fill)
        with pytest.raises(StoreFailed):
            await case.control.enable_repository("app", enabled=False)
        status = await case.control.status()
        assert (status["ready"], len(str(status["degraded"])) > 2) == (False, True)
        asker = Asker(nursery, case.control.wait_ready)
        await trio.testing.wait_all_tasks_blocked()
        assert not asker.ended
        full = False
        await case.control.wait_ready()
        assert (await case.control.status())["ready"] is True


async def test_whoever_waits_for_a_state_learns_of_the_end(tmp_path: Path) -> None:
    askers = []
    async with trio.open_nursery() as nursery, controlled(tmp_path) as case:
        await case.hold()
        await case.control.drain()
        askers = [
            Asker(nursery, case.control.wait_idle),
            Asker(nursery, case.control.wait_drained),
        ]
        await trio.testing.wait_all_tasks_blocked()
        case.control.close()
        await trio.testing.wait_all_tasks_blocked()
        assert [str(asker.error) for asker in askers] == ["the service ends"] * 2
        assert all(isinstance(asker.error, Unavailable) for asker in askers)
