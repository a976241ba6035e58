"""The EPIC of the examples, by the program as it is installed."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.acceptance.service import PROGRAM
from tests.example_programs.loading import EXAMPLES
from tests.runtime.kit import make_repository

if TYPE_CHECKING:
    from pathlib import Path

HERE = EXAMPLES / "epic"
#: What a program that looks for modules in the folder that it works in would load.
TRAP = "open({place!r}, 'w').close()\nraise SystemExit('loaded from the checkout')\n"


def git(repository: Path, *words: str) -> str:
    called = ["git", "-C", str(repository), *words]
    return subprocess.run(called, check=True, capture_output=True, text=True).stdout


def test_an_epic_of_a_plan_leaves_a_branch_for_each_issue_that_could_begin(
    tmp_path: Path,
) -> None:
    repository = make_repository(tmp_path / "app")
    trapped = tmp_path / "trapped"
    (repository / "forge_actors").mkdir()
    for name in ("__init__.py", "__main__.py"):
        trap = TRAP.format(place=str(trapped))
        (repository / "forge_actors" / name).write_text(trap)
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "A package with a name of ours")
    words = ["--config", str(HERE / "epic.toml"), "--home", str(tmp_path / "home")]
    done = subprocess.run(
        [PROGRAM, "epic", "run", str(HERE / "plan.toml"), *words],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", "what a run says is no result"
    for issue in (1, 2):
        assert f"#{issue}: its worker ended (status 0); ready_for_merge" in done.stderr
    assert "nothing-admissible: 2 done, 1 blocked" in done.stderr
    assert not trapped.exists()
    branches = git(repository, "branch", "--format=%(refname:short)", "--list", "*/*")
    first, second = branches.split()
    assert (first[-7:], second[-7:]) == ("issue-1", "issue-2")
    page = git(repository, "show", f"{first}:page-1.html")
    assert page == "<html><h1>Page 1</h1>\n</html>\n", "what the check found is mended"
    assert git(repository, "status", "--porcelain") == ""
