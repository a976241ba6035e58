"""`run`: what is wrong with a file is told of its job, and nothing is left behind."""

from __future__ import annotations

import subprocess
import tempfile
from typing import TYPE_CHECKING

import pytest

from forge_actors.cli import main as program

if TYPE_CHECKING:
    from pathlib import Path

REPOSITORY = '[[repository]]\nname = "app"\npath = "app"\n'
GOOD = '[[job]]\nrepo = "app"\nargv = ["true"]\nname = "good"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One with a repository in it; what is temporary has a folder of its own there."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "app")], check=True)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        (REPOSITORY + GOOD + 'kind = "chek"', 2, "job[0].kind: 'chek' is no kind"),
        (REPOSITORY + GOOD + GOOD + "claims = ['x']", 2, "job[1].claims: 'x' has no"),
        (REPOSITORY + GOOD + "after = ['good']", 2, "job[0].after: is a cycle"),
        (REPOSITORY + GOOD + "after = ['zz']", 2, "job[0].after: 'zz' is no job"),
        (REPOSITORY + GOOD + "argv = 3", 2, "is no valid TOML"),
        (
            REPOSITORY.replace('"app"\np', '"b"\np') + REPOSITORY + GOOD,
            3,
            "repository[1].name: ",
        ),
        (
            REPOSITORY.replace('path = "app"', 'path = "nowhere"') + GOOD,
            2,
            "repository[0].path: ",
        ),
        (
            REPOSITORY.replace("path", "clone").replace('= "app"', '= "no"', 2)
            + GOOD.replace('"app"', '"no"'),
            2,
            "repository[0].clone: no: ",
        ),
    ],
)
def test_a_file_that_is_refused_names_the_place_and_leaves_nothing(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    status: int,
    message: str,
) -> None:
    file = folder / "jobs.toml"
    file.write_text(text)
    assert program.main(["run", str(file)]) == status
    err = capsys.readouterr().err
    assert err.startswith(f"forge-actors: {file}: ")
    assert message in err
    assert err.count("\n") == 1
    assert not list((folder / "temporary").iterdir())


@pytest.mark.parametrize("words", ["--timeout x -- true", "--", "-- true"])
def test_a_command_that_is_refused_leaves_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], words: str
) -> None:
    # The last one is refused since this folder is in no repository.
    assert program.main(["run", *words.split()]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not list((folder / "temporary").iterdir())


def test_the_home_of_a_command_that_failed_is_kept_and_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder / "app")
    assert program.main(["run", "--", "sh", "-c", "exit 3"]) == 3
    [home] = (folder / "temporary").iterdir()
    assert capsys.readouterr().err == (
        f"forge-actors: the home of this run is kept: {home}\n"
    )
