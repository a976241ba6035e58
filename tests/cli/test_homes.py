"""`restore`, `export`, `import` and `purge`: what they print, and how they end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from forge_actors import open_runtime
from tests.cli.shell import Shell
from tests.runtime.kit import make_repository

if TYPE_CHECKING:
    from pathlib import Path


async def fill(home: Path) -> None:
    app = make_repository(home.parent / "app")
    async with open_runtime(home) as runtime:
        await (await runtime.submit(app, ["echo", "x"])).wait()
    (home / "secrets").mkdir(mode=0o700)
    (home / "secrets" / "TOKEN").write_bytes(b"hunter2hunter2")


def wreck(home: Path) -> None:
    store = home / "store.sqlite"
    store.write_bytes(bytes(store.stat().st_size))


async def test_a_restore_tells_what_it_did_and_what_is_in_doubt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, file = tmp_path / "home", tmp_path / "backup"
    await fill(home)
    shell = Shell(home, capsys)
    assert (await shell("backup", str(file)))[0] == 0
    wreck(home)
    status, out, err = await shell("restore", str(file))
    assert (status, out.startswith(f"{home}: ")) == (0, True)
    assert "1 jobs (0 wait, 0 run, 1 ended)" in out
    assert f"is kept as {home}/" in err
    assert "not everything of it can be read" in err
    status, out, _ = await shell("restore", "--json", "--empty")
    told = json.loads(out)
    assert (status, told["ended"], told["repositories"]) == (0, 0, 1)
    assert sum(told["settled"].values()) == 0


@pytest.mark.parametrize(
    "words",
    [
        ("restore",),
        ("restore", "file", "--empty"),
        ("restore", "--salvage", "--empty"),
        ("import", "file", "--repo", "app"),
        ("import", "file", "--repo", "=x"),
        ("import", "file", "--repo", "app="),
        ("export",),
    ],
)
async def test_a_call_that_makes_no_sense_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    status, _, err = await Shell(tmp_path / "home", capsys)(*words)
    assert (status, err.count("\n")) == (2, 1)
    assert not (tmp_path / "home").exists()


async def test_a_move_names_what_is_left_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, file, new = (tmp_path / name for name in ("home", "home.tar", "new"))
    await fill(home)
    status, out, err = await Shell(home, capsys)("export", str(file))
    assert (status, "1 files of output" in out) == (0, True)
    assert "set them there: TOKEN" in err
    (tmp_path / "app").rename(tmp_path / "gone")
    # As every other verb, and not within the loop of the test: it has its own.
    status, out, err = await Shell(new, capsys)("import", "--json", str(file))
    told = json.loads(out)
    assert (status, err) == (0, "")
    assert told["secrets"] == ["TOKEN"]
    assert list(told["disabled"]) == ["app"]
    status, _, err = await Shell(new, capsys)("import", str(file))
    assert (status, "is not empty" in err) == (3, True)


async def test_a_purge_without_yes_removes_nothing_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    await fill(home)
    (home / "notes.txt").write_text("mine")
    shell = Shell(home, capsys)
    status, listed, err = await shell("purge")
    assert status == 3
    assert f"{home}/store.sqlite\n" in listed
    assert f"{tmp_path}/app/.git/forge-actors\n" in listed
    assert "notes.txt is not ours and stays" in err
    assert "nothing was removed" in err
    status, removed, _ = await shell("purge", "--yes")
    assert (status, set(removed.splitlines()) >= set(listed.splitlines())) == (0, True)
    assert [path.name for path in home.iterdir()] == ["notes.txt"]
    assert (await shell("purge"))[0] == 2
