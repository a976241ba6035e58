"""A restored store: nothing that is still known is lost, nothing runs twice."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Any

import apsw
import msgspec
import pytest

from forge_actors.domain.changes import ForgottenJob, JobsForgotten
from forge_actors.domain.errors import (
    InvalidInput,
    NotFound,
    Refused,
    StoreDamaged,
    StoreFailed,
    StoreFromTheFuture,
)
from forge_actors.domain.events import Event
from forge_actors.domain.history import History
from forge_actors.domain.launch import ProcessIdentity, Receipt
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.schedule_changes import ScheduleRemoved, ScheduleSaved
from forge_actors.domain.schedule_records import encoded
from forge_actors.domain.schedules import Definition, Progress, Schedule
from forge_actors.domain.triggers import Manual
from forge_actors.domain.trust_changes import TrustRemoved, TrustSaved
from forge_actors.edges.sqlite.store import SqliteStore, open_store
from forge_actors.runtime import restore as restoring
from forge_actors.runtime.backup import back_up
from forge_actors.runtime.ownership import own_home
from forge_actors.runtime.restore import How, Restored, restore
from forge_actors.testing.store_contract import dispatched, ended, job, ran, repository
from tests.runtime.kit import make_repository, running

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

NOW = 1_800_000_000.0
FAR_EVENT = 1_000_000


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / "logs").mkdir(parents=True)
    (tmp_path / "home" / "receipts").mkdir()
    return tmp_path / "home"


def opened(home: Path) -> AbstractAsyncContextManager[SqliteStore]:
    path = home / "store.sqlite"
    return open_store(path, repository_workers=4, overtake_after=1800.0)


async def saved(home: Path, *changes: Any) -> None:
    async with opened(home) as store:
        await store.save(changes).wait()


def backup(home: Path) -> Path:
    file = home.parent / "backup.sqlite"
    back_up(home, file, overwrite=True)
    return file


def wreck(home: Path) -> None:
    """Nothing of the store can be read any more."""
    path = home / "store.sqlite"
    path.write_bytes(os.urandom(path.stat().st_size))


def put_back(home: Path, file: Path | None, how: How = "backup") -> Restored:
    return restore(home, how, file, NOW)


async def jobs(home: Path) -> dict[str, dict[str, Any]]:
    """Every job as its row, and a proof that its events tell the same."""
    async with opened(home) as store:
        names = "id, state, attempt, fence, held_at, error, finished_at"
        rows = store.reader.execute(f"SELECT {names} FROM job")
        found = {row[0]: dict(zip(names.split(", "), row, strict=True)) for row in rows}
        history = History()
        for event in store.events(0, 10_000):
            if event.kind == "store_restored" or history.seq:
                history.apply(event)
        active = {name for name, row in found.items() if row["finished_at"] is None}
        for name in active:
            past = history.jobs[name]
            assert past.state in (found[name]["state"], "dispatched")
            assert past.attempt == found[name]["attempt"]
            assert past.held == (found[name]["held_at"] is not None)
        assert active <= set(history.jobs)
    return found


async def fence(home: Path) -> int:
    async with opened(home) as store:
        return store.load("repo").fence


async def test_what_has_happened_since_the_backup_stays_so(home: Path) -> None:
    names = ("waits", "ends", "runs", "repeats")
    await saved(home, repository(), *map(job, names))
    file = backup(home)
    await saved(
        home,
        *(dispatched(name, fence=n + 1) for n, name in enumerate(names[1:])),
        ran("runs", fence=2),
        ended("ends"),
        job("later"),
    )
    restored = put_back(home, file)
    assert (restored.settled.added, restored.settled.moved) == (1, 3)
    assert restored.whole
    found = await jobs(home)
    assert {name: row["state"] for name, row in found.items()} == {
        "waits": "queued",
        "ends": "succeeded",
        "runs": "running",
        "repeats": "dispatched",
        "later": "queued",
    }
    assert await fence(home) == 3


async def test_a_job_is_not_run_again_for_a_backup_from_before_its_end(
    home: Path,
) -> None:
    """Neither its row nor its end can be read any more, only what it left behind."""
    await saved(
        home, repository(), *map(job, ("printed", "told", "silent", "repeatable"))
    )
    await saved(home)
    async with opened(home) as store:
        safe = "UPDATE job SET replay = 'safe' WHERE id = 'repeatable'"
        store._db.execute(safe)
    file = backup(home)
    (home / "logs" / "printed.1.stdout").write_text("done\n")
    receipt = Receipt("told", 1, 7, "exit", 30.0, started_at=21.5, exit_code=0)
    (home / "receipts" / "1-2.jsonl").write_bytes(msgspec.json.encode(receipt) + b"\n")
    wreck(home)
    restored = put_back(home, file)
    assert restored.settled._replace(added=0) == (0, 0, 1, 1, 1, 0, 0)
    assert not restored.whole
    found = await jobs(home)
    assert found["printed"]["state"] == "human_attention_required"
    assert "logs/printed.1.stdout" in found["printed"]["error"]
    assert (found["told"]["state"], found["told"]["fence"]) == ("dispatched", 7)
    assert (found["silent"]["state"], found["silent"]["held_at"]) == ("queued", NOW)
    assert found["repeatable"]["held_at"] is None
    assert await fence(home) == 7


async def test_the_next_start_decides_about_what_had_begun(tmp_path: Path) -> None:
    home, app = tmp_path / "home", make_repository(tmp_path / "app")
    done = tmp_path / "done"
    argv = ["bash", "-c", f"echo x >> {done}"]
    async with running(home) as runtime:
        await runtime.add_repository(app)
        held = await runtime.submit("app", ["true"])
        await held.wait()
    async with opened(home) as store:
        [repo] = store.repositories()
        store.take_over("test", ProcessIdentity("boot", 1, 1), "release", NOW)
        await store.save([job("told", repo.id)]).wait()
        spec = msgspec.json.encode({"argv": argv, "cwd": str(app)})
        store._db.execute("UPDATE job SET spec = ? WHERE id = 'told'", (spec,))
    file = backup(home)
    receipt = Receipt("told", 1, 7, "exit", 30.0, started_at=21.5, exit_code=3)
    (home / "receipts" / "1-2.jsonl").write_bytes(msgspec.json.encode(receipt) + b"\n")
    wreck(home)
    put_back(home, file)
    async with running(home) as runtime:
        view = await runtime.control.job("told")
        assert (view.state, view.exit_code) == ("failed", 3)
        assert (await runtime.control.job(held.id)).state == "succeeded"
    assert not done.exists()


async def test_a_job_that_retention_removed_since_does_not_come_back(
    home: Path,
) -> None:
    await saved(home, repository(), job("waits"), job("gone"))
    file = backup(home)
    await saved(home, dispatched("gone"), ended("gone"))
    gone = JobsForgotten((ForgottenJob("gone", "repo", "succeeded"),), 50.0)
    await saved(home, gone)
    restored = put_back(home, file)
    assert restored.settled.forgotten == 1
    assert set(await jobs(home)) == {"waits"}
    async with opened(home) as store:
        assert "removed by retention" in str(store.not_found("gone"))


async def test_what_is_trusted_is_what_was_trusted_last(home: Path) -> None:
    event = Event("repository_trusted", NOW, "repo")
    other = repository("other")
    schedules = []
    for repo in ("repo", "other"):
        source = f"trust:{repo}"
        definition = Definition(
            repo, repo, Manual(), JobRequest(repo, ["x"]), source=source
        )
        body = encoded(Schedule(repo, 1, definition, Progress(0.0)))
        schedules.append(ScheduleSaved(repo, repo, body))
    trusts = [TrustSaved("repo", b"old", event), TrustSaved("other", b"x", event)]
    await saved(home, repository(), other, *trusts, *schedules)
    file = backup(home)
    # One was taken over again since, the other taken back, with its schedule.
    await saved(
        home,
        TrustSaved("repo", b"new", event),
        TrustRemoved("other", event),
        ScheduleRemoved("other", event),
    )
    put_back(home, file)
    async with opened(home) as store:
        assert store.trusting() == ["repo"]
        assert store.trusted("repo") == (b"new", None)
        assert [name for _, name, _ in store.schedules()] == ["repo"]
    wreck(home)
    put_back(home, file)
    async with opened(home) as store:
        assert store.trusted("repo") == (b"old", None)


async def test_a_backup_in_a_new_home_is_taken_as_it_is(
    home: Path, tmp_path: Path
) -> None:
    await saved(home, repository(), job())
    restored = put_back(tmp_path / "new", backup(home))
    assert (restored.replaced, restored.whole) == (None, True)
    assert not any(restored.settled)
    assert (await jobs(tmp_path / "new"))["job"]["held_at"] is None


async def test_a_damaged_store_gives_what_can_still_be_read(home: Path) -> None:
    count = 2000
    await saved(home, repository(), *(job(f"job{n:05}") for n in range(count)))
    await saved(home, dispatched("job00001", fence=5))
    path = home / "store.sqlite"
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 // 4096 * 4096)
        file.write(bytes(4 * 4096))
    with pytest.raises(StoreDamaged):
        await saved(home)
    restored = put_back(home, None, "salvage")
    found = await jobs(home)
    assert not restored.whole
    assert 100 < len(found) < count
    assert restored.settled.added == len(found)
    assert (found["job00001"]["state"], await fence(home)) == ("dispatched", 5)


async def test_to_begin_anew_keeps_repositories_and_their_fences(home: Path) -> None:
    await saved(home, repository(), job(), dispatched(fence=5), job("other"))
    async with opened(home) as store:
        last = store.committed.value
    restored = put_back(home, None, "empty")
    assert restored.replaced is not None
    assert await jobs(home) == {}
    assert await fence(home) == 5
    async with opened(home) as store:
        assert [known.name for known in store.repositories()] == ["repo"]
        assert store.events(0, 1)[0].seq > last


async def test_events_that_were_lost_are_not_numbered_again(home: Path) -> None:
    await saved(home, repository(), job())
    file = backup(home)
    await saved(home, job("lost"))
    wreck(home)
    put_back(home, file)
    async with opened(home) as store:
        kinds = {event.kind: event.seq for event in store.events(0, 100)}
        assert kinds["store_restored"] > FAR_EVENT


async def test_no_owner_has_an_epoch_a_second_time(home: Path) -> None:
    await saved(home, repository())
    file = backup(home)
    columns = "one, epoch, instance, pid, start_ticks, boot_id, namespace, release"
    values = "1, 41, 'x', 1, 1, 'b', 1, 'r', 1.0"
    async with opened(home) as store:
        add = f"INSERT INTO owner ({columns}, acquired_at) VALUES ({values})"
        store._db.execute(add)
    put_back(home, file)
    async with opened(home) as store:
        rows = store.reader.execute("SELECT epoch FROM owner").fetchall()
        assert rows == [(41,)]


@pytest.mark.parametrize("cut", [1, 2])
async def test_a_restore_that_was_cut_off_lets_nothing_start(
    home: Path, monkeypatch: pytest.MonkeyPatch, cut: int
) -> None:
    await saved(home, repository(), job())
    file = backup(home)
    await saved(home, dispatched(), ended())
    moves = []

    def cut_off(path: Path, place: Path) -> None:
        moves.append(path)
        if len(moves) == cut:
            raise OSError(28, "No space left on device")
        real(path, place)

    real = restoring.move
    monkeypatch.setattr(restoring, "move", cut_off)
    with pytest.raises(StoreFailed, match="cannot be exchanged"):
        put_back(home, file)
    for _ in range(2):
        with pytest.raises(StoreDamaged, match="was cut off"):
            await saved(home)
    monkeypatch.undo()
    put_back(home, file)
    assert (await jobs(home))["job"]["state"] == "succeeded"
    assert not (home / "restoring").exists()


async def test_nothing_is_restored_while_somebody_has_the_home(home: Path) -> None:
    await saved(home, repository(), job())
    file = backup(home)
    with own_home(home), pytest.raises(Refused, match="another service"):
        put_back(home, file)
    lock = home / "agent.lock"
    lock.write_text("1700000000000000000-4711")
    with lock.open() as agent:
        fcntl.flock(agent, fcntl.LOCK_EX)
        with pytest.raises(Refused, match="kill 4711 ends them"):
            put_back(home, file)
    put_back(home, file)


async def test_a_file_that_is_not_fit_changes_nothing(home: Path) -> None:
    await saved(home, repository(), job())
    file = backup(home)
    before = (home / "store.sqlite").read_bytes()
    other = home.parent / "other"
    db = apsw.Connection(str(other))
    db.execute("CREATE TABLE bookmark (url)")
    db.close()
    newer = home.parent / "newer"
    newer.write_bytes(file.read_bytes())
    db = apsw.Connection(str(newer))
    db.execute("PRAGMA user_version = 99")
    db.close()
    broken = home.parent / "broken"
    broken.write_bytes(file.read_bytes()[:5000])
    for wrong, error in (
        (other, StoreFailed),
        (newer, StoreFromTheFuture),
        (broken, StoreDamaged),
        (home / "nothing", StoreFailed),
        (home / "store.sqlite", InvalidInput),
    ):
        with pytest.raises(error):
            put_back(home, wrong)
        assert (home / "store.sqlite").read_bytes() == before
    with pytest.raises(NotFound):
        restore(home.parent / "empty", "salvage", None, NOW)
