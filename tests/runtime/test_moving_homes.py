"""A home in one file: what goes with it, and what nobody may slip into one."""

from __future__ import annotations

import io
import json
import tarfile
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.errors import ForgeError, InvalidInput, NotFound, Refused
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.git.checkout import GitProgram
from forge_actors.edges.sqlite.store import open_store
from forge_actors.runtime.export import MANIFEST, Exported, export
from forge_actors.runtime.importing import Imported, import_home
from forge_actors.runtime.purge import purge
from forge_actors.testing.store_contract import dispatched, job, repository
from tests.runtime.kit import make_repository, running

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = 1_800_000_000.0


async def make_home(home: Path, app: Path) -> str:
    """A home with a job that ended and one that runs; the id of the first."""
    async with running(home) as runtime:
        await runtime.add_repository(app)
        ended = await runtime.submit("app", ["echo", "well done"])
        await ended.wait()
    store_path = home / "store.sqlite"
    async with open_store(
        store_path, repository_workers=4, overtake_after=1800.0
    ) as store:
        [repo] = store.repositories()
        store.take_over("test", ProcessIdentity("boot", 1, 1), "release", NOW)
        changes = [job("never", repo.id), job("safe", repo.id), job("waits", repo.id)]
        await store.save(changes).wait()
        store._db.execute("UPDATE job SET replay = 'safe' WHERE id = 'safe'")
        runs = [
            dispatched("never", repo.id, fence=2),
            dispatched("safe", repo.id, fence=3),
        ]
        await store.save(runs).wait()
    return ended.id


async def make_plain_home(home: Path) -> None:
    """One with a job that waits, and some output."""
    home.mkdir()
    store_path = home / "store.sqlite"
    async with open_store(
        store_path, repository_workers=4, overtake_after=1800.0
    ) as store:
        await store.save([repository(), job()]).wait()
    (home / "logs").mkdir()
    (home / "logs" / "job.1.stdout").write_bytes(b"well done\n")


def exported(home: Path) -> tuple[Path, Exported]:
    file = home.parent / "home.tar"
    return file, export(home, file, NOW, overwrite=True)


async def imported(home: Path, file: Path, **places: Path) -> Imported:
    told = {name: str(path) for name, path in places.items()}
    return await import_home(home, file, told, GitProgram(), NOW)


async def test_a_home_goes_on_elsewhere(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    done = await make_home(old, make_repository(tmp_path / "app"))
    (old / "settings.toml").write_text("[limits]\nworkers = 3\n")
    (old / "templates.toml").write_text(
        '[[template]]\nname = "t"\njob = { argv = ["true"] }\n'
    )
    (old / "secrets").mkdir(mode=0o700)
    (old / "secrets" / "TOKEN").write_bytes(b"hunter2hunter2")
    file, told = exported(old)
    assert (told.secrets, told.contents.reserved) == (["TOKEN"], 2)
    assert b"hunter2" not in file.read_bytes()
    assert file.stat().st_mode & 0o777 == 0o600
    # The checkout is somewhere else on the other machine.
    (tmp_path / "app").rename(tmp_path / "gone")
    here = make_repository(tmp_path / "clone")
    made = await imported(new, file, app=here)
    assert (made.disabled, made.interrupted, made.secrets) == ({}, 2, ["TOKEN"])
    assert sorted(entry.name for entry in new.iterdir()) == [
        *(
            "instance",
            "logs",
            "receipts",
            "runtime.lock",
            "settings.toml",
            "store.sqlite",
            "templates.toml",
        )
    ]
    async with running(new) as runtime:
        states = {
            name: (await runtime.control.job(name)).state
            for name in (done, "never", "waits")
        }
        assert states[done] == "succeeded"
        assert (await runtime.control.template("t")).job == {"argv": ["true"]}
        assert states["never"] == "human_attention_required"
        chunk = await runtime.control.read_log(done, "stdout", 0, limit=100)
        assert chunk.data == b"well done\n"
        again = await runtime.control.wait(["safe", "waits"])
        assert [view.state for view in again] == ["succeeded"] * 2
        # Known by its own mark: it is not registered a second time.
        assert (await runtime.add_repository(here)).name == "app"
    assert sorted(path.name for path in old.iterdir() if path.suffix == ".toml")


async def test_prompts_go_along_and_are_what_their_names_say(tmp_path: Path) -> None:
    await make_plain_home(tmp_path / "old")
    prompt = b"Do it."
    folder = tmp_path / "old" / "prompts"
    folder.mkdir(mode=0o700)
    (folder / sha256(prompt).hexdigest()).write_bytes(prompt)
    (folder / f"{'a' * 64}.1.new").write_bytes(b"half")
    file, _ = exported(tmp_path / "old")
    await imported(tmp_path / "new", file)
    [found] = (tmp_path / "new" / "prompts").iterdir()
    assert found.read_bytes() == prompt
    (folder / ("b" * 64)).write_bytes(b"Do something else.")
    file, _ = exported(tmp_path / "old")
    with pytest.raises(InvalidInput, match="not what its name says"):
        await imported(tmp_path / "other", file)


async def test_a_repository_that_is_not_here_waits_disabled(tmp_path: Path) -> None:
    await make_home(tmp_path / "old", make_repository(tmp_path / "app"))
    file, _ = exported(tmp_path / "old")
    (tmp_path / "app").rename(tmp_path / "elsewhere")
    made = await imported(tmp_path / "new", file)
    assert "does not exist on this machine" in made.disabled["app"]
    async with running(tmp_path / "new") as runtime:
        view = await runtime.control.job("waits")
        assert view.state == "queued"
        # It has its mark, so it is known wherever it is.
        found = await runtime.add_repository(tmp_path / "elsewhere")
        assert (found.name, found.enabled) == ("app", False)
        await runtime.control.enable_repository("app", enabled=True)
        [view] = await runtime.control.wait(["waits"])
        assert view.state == "succeeded"


async def test_another_repository_at_the_old_path_is_not_taken_for_it(
    tmp_path: Path,
) -> None:
    await make_home(tmp_path / "old", make_repository(tmp_path / "app"))
    file, _ = exported(tmp_path / "old")
    (tmp_path / "app").rename(tmp_path / "elsewhere")
    make_repository(tmp_path / "app")
    made = await imported(tmp_path / "new", file)
    assert "another repository" in made.disabled["app"]


async def test_only_a_new_home_takes_an_export(tmp_path: Path) -> None:
    await make_home(tmp_path / "old", make_repository(tmp_path / "app"))
    file, _ = exported(tmp_path / "old")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "diary").write_text("x")
    for home in (tmp_path / "old", tmp_path / "full"):
        with pytest.raises(Refused, match="is not empty"):
            await imported(home, file)
    with pytest.raises(NotFound, match="no repository 'other'"):
        await imported(tmp_path / "new", file, other=tmp_path)
    with pytest.raises(InvalidInput, match="no git work tree"):
        await imported(tmp_path / "new", file, app=tmp_path)
    assert not list((tmp_path / "new").iterdir())


def _members(file: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(file) as tar:
        found = []
        for info in tar:
            source = tar.extractfile(info)
            found.append((info, b"" if source is None else source.read()))
        return found


def _plain(name: str, data: bytes = b"x") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    return info, data


def _special(name: str, kind: bytes, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info, b""


Members = list[tuple[tarfile.TarInfo, bytes]]

HOSTILE: dict[str, Callable[[Members], Members]] = {
    "a way up": lambda m: [*m, _plain("../evil")],
    "a way up from the logs": lambda m: [*m, _plain("logs/../../evil")],
    "an absolute path": lambda m: [*m, _plain("/tmp/evil")],
    "a file that is none of ours": lambda m: [*m, _plain("agent.json")],
    "a file in another folder": lambda m: [*m, _plain("secrets/TOKEN")],
    "a link": lambda m: [_special("logs/a.1.stdout", tarfile.SYMTYPE, "/etc"), *m],
    "a hard link": lambda m: [_special("settings.toml", tarfile.LNKTYPE, "x"), *m],
    "a folder": lambda m: [_special("logs/a.1.stdout", tarfile.DIRTYPE), *m],
    "a pipe": lambda m: [_special("logs/a.1.stdout", tarfile.FIFOTYPE), *m],
    "a name twice": lambda m: [m[0], m[0], *m[1:]],
    "a file too many": lambda m: [_plain("logs/a.1.stdout"), *m],
    "a file too few": lambda m: [*m[:1], *m[2:]],
    "no manifest": lambda m: m[:-1],
    "no store": lambda m: m[1:],
    "another store": lambda m: [_plain("store.sqlite", m[0][1] + b"x"), *m[1:]],
    "a long name": lambda m: [*m, _plain(f"logs/{'a' * 300}.1.stdout")],
    "settings too large": lambda m: [_plain("settings.toml", bytes(2 << 20)), *m],
    "a manifest of words": lambda m: [*m[:-1], _plain(MANIFEST, b"[1, 2]")],
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE.keys())
async def test_what_may_not_be_in_an_export_is_refused_whole(
    tmp_path: Path, change: Callable[[Members], Members]
) -> None:
    await make_plain_home(tmp_path / "old")
    file, _ = exported(tmp_path / "old")
    wrong = tmp_path / "wrong.tar"
    with tarfile.open(wrong, "w", format=tarfile.GNU_FORMAT) as tar:
        for info, data in change(_members(file)):
            tar.addfile(info, io.BytesIO(data))
    before = set(tmp_path.iterdir())
    with pytest.raises(InvalidInput):
        await imported(tmp_path / "new", wrong)
    assert set(tmp_path.iterdir()) - before == {tmp_path / "new"}
    assert not list((tmp_path / "new").iterdir())


async def test_an_export_that_was_cut_off_is_refused_wherever_that_was(
    tmp_path: Path,
) -> None:
    await make_plain_home(tmp_path / "old")
    file, _ = exported(tmp_path / "old")
    whole = file.read_bytes()
    cut = tmp_path / "cut.tar"
    for length in (0, 1, 511, 512, 5000, len(whole) - 2048, len(whole) - 1024):
        cut.write_bytes(whole[:length])
        with pytest.raises(InvalidInput):
            await imported(tmp_path / "new", cut)
    cut.write_bytes(b"my diary\n" * 1000)
    with pytest.raises(InvalidInput, match="no tar file"):
        await imported(tmp_path / "new", cut)


async def test_a_manifest_with_the_right_hash_of_a_wrong_store_is_not_enough(
    tmp_path: Path,
) -> None:
    await make_plain_home(tmp_path / "old")
    file, _ = exported(tmp_path / "old")
    import hashlib

    store = b"my diary\n" * 1000
    told = json.loads(_members(file)[-1][1])
    told["files"]["store.sqlite"] = {
        "size": len(store),
        "sha256": hashlib.sha256(store).hexdigest(),
    }
    wrong = tmp_path / "wrong.tar"
    with tarfile.open(wrong, "w", format=tarfile.GNU_FORMAT) as tar:
        members = [_plain("store.sqlite", store), *_members(file)[1:-1]]
        for info, data in [*members, _plain(MANIFEST, json.dumps(told).encode())]:
            tar.addfile(info, io.BytesIO(data))
    with pytest.raises(ForgeError, match="damaged, or no store"):
        await imported(tmp_path / "new", wrong)


async def test_a_served_home_can_be_exported(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    async with running(tmp_path / "old") as runtime:
        await runtime.add_repository(app)
        job = await runtime.submit("app", ["echo", "x"])
        await job.wait()
        file, told = await trio.to_thread.run_sync(exported, tmp_path / "old")
    assert (told.contents.ended, told.logs) == (1, 1)
    made = await imported(tmp_path / "new", file)
    assert made.disabled == {}


async def test_the_home_an_import_came_from_keeps_its_repositories(
    tmp_path: Path,
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    app = make_repository(tmp_path / "app")
    await make_home(old, app)
    file, _ = exported(old)
    await imported(new, file)
    assert not purge(new).repositories
    assert not new.exists()
    async with running(old) as runtime:
        job = await runtime.submit("app", ["echo", "x"])
        assert (await job.wait()).state == "succeeded"
