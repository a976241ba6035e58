"""`backup`: one file, and never somebody else's."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from forge_actors import open_runtime
from forge_actors.client.offline import check
from tests.cli.shell import Shell
from tests.runtime.kit import make_repository

if TYPE_CHECKING:
    from pathlib import Path


async def make_home(tmp_path: Path) -> Path:
    app = make_repository(tmp_path / "app")
    async with open_runtime(tmp_path / "home") as runtime:
        await (await runtime.submit(app, ["true"])).wait()
    return tmp_path / "home"


async def test_a_backup_is_told_and_can_be_read_like_a_home(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = Shell(await make_home(tmp_path), capsys)
    (tmp_path / "copy").mkdir()
    file = tmp_path / "copy" / "store.sqlite"
    status, out, err = await shell("backup", str(file))
    assert (status, err) == (0, "")
    assert out.startswith(f"{file}: ")
    assert "1 repositories, 1 jobs (0 wait, 0 run, 1 ended)" in out
    assert "1 jobs" in check(str(file.parent))
    status, out, _ = await shell("backup", "--json", "--force", str(file))
    assert (status, json.loads(out)["ended"]) == (0, 1)


async def test_what_is_there_is_replaced_only_if_that_is_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = await make_home(tmp_path)
    shell = Shell(home, capsys)
    (tmp_path / "diary").write_text("dear diary")
    assert (await shell("backup", str(tmp_path / "diary")))[0] == 3
    assert (tmp_path / "diary").read_text() == "dear diary"
    for wrong in (home / "store.sqlite", home / "store.sqlite-wal"):
        assert (await shell("backup", "--force", str(wrong)))[0] == 2
    assert (await shell("backup", str(tmp_path)))[0] == 2
    assert (await shell("backup", str(tmp_path / "no" / "file")))[0] == 2
    assert "whole" in check(str(home))


async def test_a_home_without_a_store_has_nothing_to_back_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, err = await Shell(tmp_path, capsys)("backup", str(tmp_path / "file"))
    assert (status, err) == (2, f"forge-actors: there is no store in {tmp_path}\n")
    assert not list(tmp_path.iterdir())
