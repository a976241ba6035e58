"""A disk that fills up: people are warned, new jobs refused, and what runs goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.domain.disk import DiskLow, Room
from forge_actors.edges.disk import room_of
from forge_actors.runtime.disk_watch import LOOK_SECONDS, DiskWatch, room_view
from forge_actors.runtime.settings import Settings
from forge_actors.testing.clock import FakeClock
from forge_actors.testing.store import MemoryStore
from tests.runtime.test_reload import at_home
from tests.small_disk import needs_root, small_disk

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
FULL = '[disk]\nwarn_free = "1024T"\nrefuse_free = "1024T"\n'
LOW = '[disk]\nwarn_free = "1024T"\nrefuse_free = 0\n'


class Disk:
    """One whose room is what a test says, and which counts the looks at it."""

    def __init__(self, free: int) -> None:
        self.free: int | None = free
        self.looks = 0

    def __call__(self, _: str | Path) -> Room | None:
        self.looks += 1
        return None if self.free is None else Room(self.free, 100 * GIB)

    def watched(self, home: Path, store: MemoryStore) -> DiskWatch:
        settings = Settings()
        return DiskWatch(home, lambda: settings, store, FakeClock(), self)


@pytest.mark.mock_clock
async def test_callers_that_come_fast_share_one_look(tmp_path: Path) -> None:
    disk = Disk(50 * GIB)
    async with MemoryStore().open() as store:
        watch = disk.watched(tmp_path, store)
        for _ in range(1000):
            watch.check()
        assert disk.looks == 1
        await trio.sleep(LOOK_SECONDS)
        watch.check()
        assert disk.looks == 2


@pytest.mark.mock_clock
async def test_each_change_is_told_once(tmp_path: Path) -> None:
    disk = Disk(50 * GIB)
    store = MemoryStore()
    async with store.open():
        watch = disk.watched(tmp_path, store)
        for free in (50, 1, 1, 0, 0, 1, 50, 50):
            disk.free = free * GIB
            assert (watch.view()["state"] == "ok") == (watch.problem is None)
    states = [event.data["state"] for event in store.durable.events]
    assert states == ["low", "full", "low", "ok"]


@pytest.mark.mock_clock
async def test_a_disk_of_which_nobody_can_tell_refuses_nobody(tmp_path: Path) -> None:
    disk = Disk(0)
    disk.free = None
    async with MemoryStore().open() as store:
        watch = disk.watched(tmp_path, store)
        watch.check()
        assert watch.view() == {"state": "unknown", "problem": None}
        assert watch.problem is None


async def test_without_room_new_jobs_are_refused_and_the_others_end(
    tmp_path: Path,
) -> None:
    async with at_home(tmp_path) as home:
        known = await home.submit("app", "true", request_id="once")
        runs = await home.hold()
        await home.reload(FULL)
        status: Any = await home.control.status()
        assert status["disk"]["state"] == "full"
        [problem] = status["degraded"]
        assert "no new job is taken until 1024 TiB are" in problem
        with pytest.raises(DiskLow, match="forge-actors clean removes what may go"):
            await home.submit()
        with pytest.raises(DiskLow):
            await home.control.retry([known])
        # What was taken before is known still, and its end is saved.
        assert await home.submit("app", "true", request_id="once") == known
        [ended] = await home.end(runs)
        assert ended.state == "cancelled"
        await home.reload("")
        status = await home.control.status()
        assert (status["disk"]["state"], status["degraded"]) == ("ok", [])
        await home.submit()
        told = []
        async for event in home.runtime.events(after=0):
            if event.kind == "disk_room":
                told.append(event.data["state"])
            if "ok" in told:
                break
        assert told == ["full", "ok"]


async def test_with_little_room_there_is_a_warning_and_jobs_run(tmp_path: Path) -> None:
    async with at_home(tmp_path, LOW) as home:
        job = await home.submit()
        assert [view.state for view in await home.control.wait([job])] == ["succeeded"]
        status: Any = await home.control.status()
        assert status["disk"]["state"] == "low"
        assert status["ready"] is True
        assert "disk.warn_free" in status["degraded"][0]


def test_without_a_service_the_settings_of_the_home_count(tmp_path: Path) -> None:
    assert room_view(str(tmp_path), str(tmp_path))["state"] == "ok"
    (tmp_path / "settings.toml").write_text(FULL)
    assert room_view(str(tmp_path), str(tmp_path))["state"] == "full"
    (tmp_path / "settings.toml").write_text("nonsense")
    assert room_view(str(tmp_path), str(tmp_path))["state"] == "ok"
    assert room_of(tmp_path / "nowhere") is None


@needs_root
def test_a_disk_without_room_says_so(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1024):
        (tmp_path / "disk" / "large").write_bytes(bytes(1000 * 1024))
        room = room_of(tmp_path / "disk")
        assert room is not None
        assert room.total == 1024 * 1024
        assert room_view("/home", str(tmp_path / "disk"))["state"] == "full"
