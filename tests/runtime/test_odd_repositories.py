"""Repositories that are not like others: each works, or is refused with the way out.

These are the rows of `design/repositories.md`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import InvalidInput
from tests.runtime.kit import make_repository, running

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors import Runtime
    from forge_actors.domain.jobs import JobView

FILE = ("-c", "protocol.file.allow=always")


def git(folder: Path, *words: str | Path) -> str:
    command = ["git", *FILE, "-C", str(folder), *map(str, words)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def with_file(folder: Path) -> Path:
    make_repository(folder)
    (folder / "tracked").write_text("content\n")
    git(folder, "add", "tracked")
    git(folder, "commit", "-q", "-m", "a file")
    return folder


def submodule(place: Path) -> Path:
    part, app = with_file(place / "part"), make_repository(place / "app")
    git(app, "submodule", "--quiet", "add", part, "sub")
    return app / "sub"


def superproject(place: Path) -> Path:
    return submodule(place).parent


def submodule_of_a_linked_work_tree(place: Path) -> Path:
    app = superproject(place)
    git(app, "commit", "-q", "-m", "with a submodule")
    tree = place / "tree"
    git(app, "worktree", "add", "-q", tree)
    git(tree, "submodule", "--quiet", "update", "--init")
    return tree / "sub"


def work_tree_of_a_bare_one(place: Path) -> Path:
    git(place, "clone", "-q", "--bare", with_file(place / "app"), "bare.git")
    git(place / "bare.git", "worktree", "add", "-q", place / "tree")
    return place / "tree"


def shallow(place: Path) -> Path:
    source = with_file(place / "app")
    git(place, "clone", "-q", "--depth", "1", f"file://{source}", "shallow")
    assert (place / "shallow" / ".git" / "shallow").exists()
    return place / "shallow"


def partial(place: Path) -> Path:
    source = with_file(place / "app")
    git(source, "config", "uploadpack.allowFilter", "true")
    clone = ("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{source}")
    git(place, *clone, "partial")
    shutil.rmtree(source)  # whoever would fetch something finds nobody
    return place / "partial"


def of_sha256(place: Path) -> Path:
    folder = place / "sha256"
    git(place, "init", "-q", "--object-format=sha256", folder)
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    assert len(git(folder, "rev-parse", "HEAD")) == 64
    return folder


def lfs_without_its_program(place: Path) -> Path:
    folder = with_file(place / "lfs")
    (folder / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs\n")
    (folder / "big.bin").write_text("version https://git-lfs.github.com/spec/v1\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "a pointer")
    for name in ("clean", "smudge", "process"):
        git(folder, "config", f"filter.lfs.{name}", f"no-such-git-lfs {name}")
    git(folder, "config", "filter.lfs.required", "true")
    return folder


def beside_its_work_tree(place: Path) -> Path:
    folder = place / "tree"
    git(place, "init", "-q", "--separate-git-dir", place / "elsewhere", folder)
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    return folder


def without_a_commit(place: Path) -> Path:
    git(place, "init", "-q", place / "unborn")
    return place / "unborn"


def detached(place: Path) -> Path:
    folder = with_file(place / "app")
    git(folder, "checkout", "-q", "--detach")
    return folder


def inside_of_another(place: Path) -> Path:
    return with_file(make_repository(place / "outer") / "inner")


def with_borrowed_objects(place: Path) -> Path:
    git(place, "clone", "-q", "--shared", with_file(place / "app"), "shared")
    return place / "shared"


def behind_a_link(place: Path) -> Path:
    folder = with_file(place / "app")
    (folder / ".git").rename(place / "real")
    (folder / ".git").symlink_to(place / "real")
    return folder


def of_another_user(place: Path) -> Path:
    if os.getuid() != 0:
        pytest.skip("needs root to give a repository away")
    folder = with_file(place / "theirs")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, 65534, 65534)
    return folder


async def run(runtime: Runtime, repo: str, *argv: str) -> JobView:
    from forge_actors.domain.requests import JobRequest

    [accepted] = await runtime.control.submit([JobRequest(repo, list(argv))])
    [view] = await runtime.control.wait([accepted.id])
    return view


@pytest.mark.parametrize(
    "make",
    [
        submodule,
        superproject,
        submodule_of_a_linked_work_tree,
        work_tree_of_a_bare_one,
        shallow,
        partial,
        of_sha256,
        lfs_without_its_program,
        beside_its_work_tree,
        without_a_commit,
        detached,
        inside_of_another,
        with_borrowed_objects,
        behind_a_link,
    ],
)
async def test_it_works(make: Callable[[Path], Path], tmp_path: Path) -> None:
    folder = make(tmp_path)
    async with running(tmp_path / "home") as runtime:
        added = await runtime.control.add_repository(str(folder), "odd")
        assert (added.path, added.note) == (str(folder), None)
        again = await runtime.control.add_repository(str(folder))
        assert again.note == "already registered as 'odd'"
        for repo in ("odd", str(folder)):
            view = await run(runtime, repo, "sh", "-c", "git rev-parse --show-toplevel")
            assert (view.state, view.cwd) == ("succeeded", str(folder))
            chunk = await runtime.control.read_log(view.id, "stdout", 0, limit=1000)
            assert chunk.data.decode() == f"{folder}\n"
        assert (await runtime.control.repository("odd")).note is None


async def test_a_submodule_and_its_superproject_are_two(tmp_path: Path) -> None:
    sub = submodule(tmp_path)
    async with running(tmp_path / "home") as runtime:
        outer = await runtime.control.add_repository(str(sub.parent))
        inner = await runtime.control.add_repository(str(sub))
        assert (outer.name, inner.name) == ("app", "sub")
        assert outer.id != inner.id
        # Without its checkout git would work on the superproject in that folder.
        git(sub.parent, "submodule", "--quiet", "deinit", "--force", "sub")
        assert sub.is_dir()
        view = await run(runtime, "sub", "git", "add", "-A")
        assert view.error is not None
        assert view.error.code == "REPOSITORY_GONE"
        assert view.error.message.startswith("the work tree of its repository is gone")
        # A superproject that is renamed takes its submodules along.
        git(sub.parent, "submodule", "--quiet", "update", "--init", "sub")
        sub.parent.rename(tmp_path / "renamed")
        view = await run(runtime, "sub", "git", "status")
        assert (view.state, view.cwd) == ("succeeded", str(tmp_path / "renamed/sub"))


def bare(place: Path) -> tuple[Path, str]:
    git(place, "clone", "-q", "--bare", with_file(place / "app"), "bare.git")
    return place / "bare.git", f"git -C {place}/bare.git worktree add FOLDER"


def git_folder(place: Path) -> tuple[Path, str]:
    return with_file(place / "app") / ".git" / "objects", "worktree add FOLDER"


def work_tree_elsewhere(place: Path) -> tuple[Path, str]:
    folder = with_file(place / "app")
    (place / "elsewhere").mkdir()
    git(folder, "config", "core.worktree", place / "elsewhere")
    way_out = f"write `gitdir: {folder}/.git` to {place}/elsewhere/.git"
    return folder, f"{way_out}, and add {place}/elsewhere"


def of_a_format_that_git_does_not_know(place: Path) -> tuple[Path, str]:
    """Such as reftable, where git is older than that."""
    folder = with_file(place / "app")
    git(folder, "config", "core.repositoryFormatVersion", "1")
    git(folder, "config", "extensions.laterThanThis", "yes")
    return folder, "laterthanthis"


def linked_to_nothing(place: Path) -> tuple[Path, str]:
    app = with_file(place / "app")
    git(app, "worktree", "add", "-q", place / "tree")
    shutil.rmtree(app)
    return place / "tree", "not a git repository"


def named_by_strange_bytes(place: Path) -> tuple[Path, str]:
    return make_repository(place / os.fsdecode(b"caf\xe9")), "rename the folder"


def without_git(place: Path) -> tuple[Path, str]:
    return place, "no git work tree"


def not_trusted(place: Path) -> tuple[Path, str]:
    folder = of_another_user(place)
    (folder / "deep").mkdir()
    # Of the folder that git looks at, which need not be the one that was given.
    return folder / "deep", f"git config --global --add safe.directory {folder}"


@pytest.mark.parametrize(
    "make",
    [
        bare,
        git_folder,
        work_tree_elsewhere,
        of_a_format_that_git_does_not_know,
        linked_to_nothing,
        named_by_strange_bytes,
        without_git,
        not_trusted,
    ],
)
async def test_it_is_refused_with_the_way_out(
    make: Callable[[Path], tuple[Path, str]], tmp_path: Path
) -> None:
    folder, way_out = make(tmp_path)
    async with running(tmp_path / "home") as runtime:
        with pytest.raises(InvalidInput) as refused:
            await runtime.control.add_repository(str(folder))
        assert way_out in str(refused.value)
        assert await runtime.control.repositories() == []


async def test_the_way_out_of_a_work_tree_elsewhere_leads_out(tmp_path: Path) -> None:
    folder, _ = work_tree_elsewhere(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / ".git").write_text(f"gitdir: {folder}/.git\n")
    async with running(tmp_path / "home") as runtime:
        added = await runtime.control.add_repository(str(elsewhere))
        assert added.path == str(elsewhere)
        view = await run(runtime, str(elsewhere), "git", "status")
        assert (view.state, view.cwd) == ("succeeded", str(elsewhere))


async def test_one_of_another_user_works_once_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = of_another_user(tmp_path)
    config = tmp_path / "config"
    git(tmp_path, "config", "--file", config, "safe.directory", folder)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    async with running(tmp_path / "home") as runtime:
        added = await runtime.control.add_repository(str(folder))
        assert added.path == str(folder)
        view = await run(runtime, "theirs", "true")
        assert view.state == "succeeded"


def _has_reftable() -> bool:
    done = subprocess.run(["git", "init", "-h"], capture_output=True, text=True)
    return "--ref-format" in done.stdout + done.stderr


@pytest.mark.skipif(not _has_reftable(), reason="this git has no reftable")
async def test_reftable_works(tmp_path: Path) -> None:
    folder = tmp_path / "reftable"
    git(tmp_path, "init", "-q", "--ref-format=reftable", folder)
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")
    async with running(tmp_path / "home") as runtime:
        await runtime.control.add_repository(str(folder))
        view = await run(runtime, "reftable", "git", "rev-parse", "HEAD")
        assert view.state == "succeeded"


def test_every_row_of_the_table_has_its_test() -> None:
    root = Path(__file__).parents[2]
    text = (root / "design" / "repositories.md").read_text()
    known = globals()
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    names = [row.strip("| ").rpartition("|")[2].strip().strip("`") for row in rows]
    assert len(names) > 20
    elsewhere = (root / "tests" / "edges" / "test_git_as_others.py").read_text()
    for name in names:
        assert name in known or f"def {name}(" in elsewhere, name
