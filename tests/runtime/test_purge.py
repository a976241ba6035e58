"""Purging removes everything that is ours, and nothing that is not."""

from __future__ import annotations

import fcntl
import tempfile
from pathlib import Path

import pytest

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.runtime.ownership import own_home
from forge_actors.runtime.purge import plan, purge
from forge_actors.runtime.worktree_folders import saved_work
from tests.runtime.kit import make_repository, running


async def make_home(home: Path, *repositories: Path) -> None:
    async with running(home) as runtime:
        for path in repositories:
            await runtime.add_repository(path)
            await (await runtime.submit(path, ["echo", "x"])).wait()


def ours(repository: Path) -> Path:
    return repository / ".git" / "forge-actors"


async def test_nothing_of_ours_is_left_anywhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    app, lib = (make_repository(tmp_path / name) for name in ("app", "lib"))
    before = {path for path in app.rglob("*") if path.is_file()}
    await make_home(home, app, lib)
    assert ours(app).is_dir()
    found = plan(home)
    assert str(ours(app)) in found.paths()
    assert home.exists()
    assert ours(app).exists()
    assert purge(home) == found
    assert not home.exists()
    assert not ours(app).exists()
    assert not ours(lib).exists()
    assert {path for path in app.rglob("*") if path.is_file()} == before


async def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    app = make_repository(tmp_path / "app")
    await make_home(home, app)
    (home / "notes.txt").write_text("mine")
    (home / "photos").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("mine")
    (home / "clones").symlink_to(outside)
    found = purge(home)
    assert [path.name for path in found.strangers] == ["notes.txt", "photos"]
    assert sorted(path.name for path in home.iterdir()) == ["notes.txt", "photos"]
    assert (outside / "file").read_text() == "mine"
    with pytest.raises(NotFound):
        plan(home)
    with pytest.raises(NotFound):
        plan(other)


async def test_a_repository_keeps_the_mark_of_another_home(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    await make_home(tmp_path / "first", app)
    ids = (ours(app) / "id").read_text()
    (ours(app) / "id").write_text(f"{ids}{'0' * 19}\n")
    purge(tmp_path / "first")
    assert (ours(app) / "id").read_text() == f"{'0' * 19}\n"


async def test_an_id_that_another_home_gave_stays(tmp_path: Path) -> None:
    """A `run` has found it in the repository: its home goes, the service's stays."""
    app = make_repository(tmp_path / "app")
    first, second = tmp_path / "first", tmp_path / "second"
    await make_home(first, app)
    given = (ours(app) / "id").read_text()
    await make_home(second, app)
    assert str(ours(app)) not in purge(second).paths()
    assert (ours(app) / "id").read_text() == given
    async with running(first) as runtime:
        job = await runtime.submit(app, ["echo", "x"])
        assert (await job.wait()).state == "succeeded"
    purge(first)
    assert not ours(app).exists()


async def test_what_a_person_set_for_a_repository_stays(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "app")
    await make_home(tmp_path / "home", app)
    (ours(app) / "settings.toml").write_text("")
    purge(tmp_path / "home")
    assert [path.name for path in ours(app).iterdir()] == ["settings.toml"]


async def test_a_repository_that_is_gone_or_was_removed_is_no_obstacle(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    app, lib = (make_repository(tmp_path / name) for name in ("app", "lib"))
    await make_home(home, app, lib)
    async with running(home) as runtime:
        await runtime.control.remove_repository("lib")
    app.rename(tmp_path / "moved")
    purge(home)
    assert not ours(lib).exists()
    assert not home.exists()


async def test_a_home_in_use_is_not_purged(tmp_path: Path) -> None:
    home = tmp_path / "home"
    await make_home(home)
    with own_home(home), pytest.raises(Refused, match="another service"):
        purge(home)
    with (home / "agent.lock").open("w") as agent:
        fcntl.flock(agent, fcntl.LOCK_EX)
        with pytest.raises(Refused, match="still run under its node agent"):
            purge(home)
    assert (home / "store.sqlite").exists()


async def test_a_store_that_cannot_be_read_is_told_and_purged(tmp_path: Path) -> None:
    home, app = tmp_path / "home", make_repository(tmp_path / "app")
    await make_home(home, app)
    (home / "damaged").mkdir()
    (home / "store.sqlite").rename(home / "damaged" / "store-1.sqlite")
    (home / "store.sqlite").write_bytes(b"my diary\n" * 1000)
    found = purge(home)
    assert found.unread
    # The one that was set aside still knew where our marks are.
    assert not ours(app).exists()
    assert not home.exists()


@pytest.mark.parametrize("shared", [True, False])
async def test_sockets_elsewhere_and_their_folders_go_too(
    tmp_path: Path, shared: bool
) -> None:
    home, around = tmp_path / "home", tmp_path / "run" / "forge-actors"
    await make_home(home)
    folder = around / "0123456789abcdef"
    folder.mkdir(mode=0o700, parents=True)
    for name in ("control.sock", "mcp.sock", "agent.sock"):
        (folder / name).touch()
        (home / f"{name}.path").write_text(f"{folder / name}\n")
    if shared:
        (around / "fedcba9876543210").mkdir()
    purge(home)
    assert not folder.exists()
    assert around.exists() == shared
    assert (tmp_path / "run").exists()


async def test_a_note_that_names_another_file_is_not_followed(tmp_path: Path) -> None:
    home, mine = tmp_path / "home", tmp_path / "logs"
    await make_home(home)
    mine.mkdir()
    (mine / "thesis.tex").write_text("x")
    (home / "control.sock.path").write_text(f"{mine / 'thesis.tex'}\n")
    (home / "agent.sock.path").write_text(f"{mine / 'agent.sock'}\n")
    purge(home)
    assert (mine / "thesis.tex").exists()


def test_somebody_elses_folder_is_never_purged(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "settings.toml").write_text("[mine]\n")
    with pytest.raises(NotFound, match="no home of a service"):
        purge(tmp_path)
    assert (tmp_path / "settings.toml").exists()


async def test_worktrees_of_jobs_are_not_removed_unseen(tmp_path: Path) -> None:
    home, app = tmp_path / "home", make_repository(tmp_path / "app")
    async with running(home) as runtime:
        await runtime.add_repository(app)
        script = ["sh", "-c", "echo work > work"]
        job = await runtime.submit(app, script, isolate=True)
        view = await job.wait()
    assert view.worktree is not None
    folder = Path(str(view.worktree["path"]))
    assert plan(home).worktrees == [folder]
    with pytest.raises(Refused, match="--worktrees"):
        purge(home)
    assert (folder / "work").read_text() == "work\n"
    purge(home, worktrees=True)
    assert not home.exists()
    assert list((app / ".git" / "worktrees").iterdir()) == []
    # The branch is the user's.
    assert (app / ".git" / "refs" / "heads" / "forge" / job.id).exists()


async def test_what_was_saved_of_worktrees_is_not_removed_unseen(
    tmp_path: Path,
) -> None:
    home, app = tmp_path / "home", make_repository(tmp_path / "app")
    await make_home(home, app)
    saved = home / "preserved" / "job" / "ignored.tar"
    saved.parent.mkdir(parents=True)
    (saved.parent / "git.tar").touch()
    assert saved_work(home) == []
    saved.touch()
    with pytest.raises(Refused, match="worktree restore"):
        purge(home)
    assert saved.exists()
    purge(home, worktrees=True)
    assert not home.exists()


async def test_a_temporary_home_with_worktrees_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    app = make_repository(tmp_path / "app")
    async with running(None) as runtime:
        await (await runtime.submit(app, ["true"], isolate=True)).wait()
        home = runtime.home
    assert home.exists()
    assert f"the home {home} is kept" in caplog.text
    async with running(None) as runtime:
        await (await runtime.submit(app, ["true"])).wait()
        home = runtime.home
    assert not home.exists()
