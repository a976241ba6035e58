"""`epic`: what is told when there is little to do, or much wrong."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from forge_actors.cli import main as program
from forge_actors.cli.epic_view import LiveTree
from forge_actors.domain.epic.records import Invocation
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.runtime.epic_place import locks
from forge_actors.testing.epic.workers import MOMENT
from tests.runtime.test_epic_looks import RECORD

if TYPE_CHECKING:
    from pathlib import Path

PLAN = 'title = "{}"\n[[issue]]\nnumber = 1\ntitle = "One"\nstate = "closed"\n'
SETTINGS = '[epic.phases.implement]\nargv = ["true"]\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two plans of which nothing can begin."""
    subprocess.run(["git", "init", "-q", str(tmp_path / "app")], check=True)
    (tmp_path / "settings.toml").write_text(SETTINGS)
    for name in ("a", "b"):
        (tmp_path / "app" / f"{name}.toml").write_text(PLAN.format(name))
    monkeypatch.chdir(tmp_path / "app")
    return tmp_path


class Called:
    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], *words: str
    ) -> None:
        self.status = program.main(["epic", *words, "--home", str(folder)])
        self.out, self.err = capsys.readouterr()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def test_a_program_is_told_how_a_run_has_ended(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Called(folder, capsys, "run", "a.toml", "--json")
    assert (run.status, run.json["end_reason"]) == (0, "nothing-admissible")
    assert [child["state"] for child in run.json["children"]] == ["closed"]
    [record] = folder.glob("app/.git/forge-actors/plans/a-*/epics/*/scheduler.json")
    record.write_text("{")
    refused = Called(folder, capsys, "run", "a.toml", "--json")
    assert (refused.status, refused.out) == (1, "")
    told = json.loads(refused.err.splitlines()[-1])["error"]
    assert told["code"] == "EPIC_NOT_BEGUN"
    assert "--force moves it aside" in told["message"]


def test_one_broken_record_hides_no_other(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for plan in ("a.toml", "b.toml"):
        assert Called(folder, capsys, "run", plan).status == 0
    [record] = folder.glob("app/.git/forge-actors/plans/a-*/epics/*/scheduler.json")
    record.write_text("{")
    (folder / "app/.git/forge-actors/epics/12").mkdir(parents=True)
    found = Called(folder, capsys, "status", "--json")
    assert [view["repository"] for view in found.json] == ["plan b"]
    assert (found.status, "scheduler.json" in found.err) == (1, True)
    stopped = Called(folder, capsys, "stop")
    assert (stopped.status, "no EPIC runs" in stopped.err) == (3, True)


def test_an_epic_of_another_repository_is_not_the_one_with_its_number(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Called(folder, capsys, "run", "a.toml").status == 0
    [plan] = folder.glob("app/.git/forge-actors/plans/a-*/epics/1000")
    epics = folder / "app/.git/forge-actors/epics"
    epics.mkdir()
    plan.rename(epics / "1000")
    other = "https://github.com/octo/demo/issues/1000"
    for words in (("status", other), ("stop", other)):
        found = Called(folder, capsys, *words)
        assert (found.status, "not of octo/demo" in found.err) == (2, True)


def test_streams_that_are_closed_change_nothing(folder: Path) -> None:
    words = [sys.executable, "-m", "forge_actors", "epic", "run", "a.toml"]
    line = shlex.join([*words, "--json", "--home", str(folder)])
    run = subprocess.run(
        ["/bin/sh", "-c", f"exec {line} 2>&- <&-"], capture_output=True, check=True
    )
    assert json.loads(run.stdout)["end_reason"] == "nothing-admissible"


class Terminal(io.StringIO):
    """One that may be gone."""

    gone = False

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if self.gone:
            raise OSError(5, "Input/output error")
        return len(text)


def test_a_terminal_that_is_gone_does_not_change_how_a_run_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with LiveTree() as tree:
        tree.line("something")
        terminal.gone = True
        with pytest.raises(OSError, match="output"):
            tree.line("more")


def test_a_title_shows_no_secret_and_moves_no_cursor(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = f"ghp_{'a' * 36}"
    told = f"\\u001b[2A see {secret}"
    plan = PLAN.format("c").replace('"One"', f'"{told}"')
    (folder / "app" / "c.toml").write_text(plan)
    for words in (("plan", "c.toml"), ("run", "c.toml"), ("status",)):
        for more in ((), ("--json",)):
            found = Called(folder, capsys, *words, *more)
            assert found.status == 0
            assert secret not in found.out + found.err
            assert "\x1b" not in found.out + found.err


def test_why_a_run_was_degraded_is_shown(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Called(folder, capsys, "run", "a.toml").status == 0
    [issues] = folder.glob("app/.git/forge-actors/plans/a-*")
    (issues / "issues" / "007").mkdir(parents=True)
    assert Called(folder, capsys, "run", "a.toml").status == 1
    shown = Called(folder, capsys, "status", "a.toml").out
    assert "finished: degraded (epic-not-admissible)" in shown
    plan = folder / "app" / "a.toml"
    plan.write_text(plan.read_text().replace('"closed"', '"open"'))
    planned = Called(folder, capsys, "plan", "a.toml")
    assert "would begin now: nothing" in planned.out
    assert (planned.status, "007 is no folder" in planned.err) == (0, True)
    (issues / "issues" / "007").rmdir()
    assert "begin now: #1" in Called(folder, capsys, "plan", "a.toml").out


def test_a_program_is_told_whom_it_has_asked_to_stop(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    going = structs.replace(RECORD, invocation=Invocation("i-00000001", MOMENT))
    with closing(FolderRoot(str(folder / "app/.git"))) as root:
        FileNamespaces(root).write_scheduler(going)
        with closing(locks(root).take_controller()):
            asked = Called(folder, capsys, "stop", "--now", "--json")
        assert (asked.status, asked.json) == (
            0,
            {
                "epic": 7,
                "mode": "now",
                "invocation": "i-00000001",
                "end_reason": None,
            },
        )
        request = FileNamespaces(root).read_stop(7).request
    assert request is not None
    assert (request.mode, request.invocation_id) == ("now", "i-00000001")
    gone = Called(folder, capsys, "stop", "https://github.com/octo/demo/issues/7")
    assert (gone.status, "it was killed" in gone.err) == (3, True)
