"""Repositories in a worktree: submodules, and others that were cloned or made there.

The objects of a submodule lie with what git knows of the worktree, and go with it. A
repository that git does not know of lies in the tree.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from forge_actors.edges.cleanup.folders import shown
from forge_actors.edges.cleanup.worktrees.census import Unreadable, take_whole
from forge_actors.edges.cleanup.worktrees.git import Git, GitFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from forge_actors.edges.cleanup.folders import Folder
    from forge_actors.edges.cleanup.worktrees.census import Census, File

#: Where git keeps the repositories of submodules.
MODULES = "modules"
#: Submodules in one another that are looked for.
_MAX_DEPTH = 8

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GIT_FILE = re.compile(r"gitdir: (.+)\n?", re.DOTALL)


class Nested(NamedTuple):
    """A repository in a worktree."""

    #: Where its files are in the tree; empty if it has none there any more.
    path: str
    #: Where its objects are in the entry of the worktree; empty if they are not there.
    module: str
    #: What it has that is nowhere else; None: nothing.
    problem: str | None
    #: Its files in the tree, by their path in it.
    files: dict[str, File]
    #: The commit that it is at.
    head: str | None = None

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files.values())


def whole(root: Folder, path: str) -> Nested:
    """A repository of which nothing is known but its files."""
    return Nested(path, "", "it is a repository of its own", take_whole(root, path))


def in_place_of_its_own(root: Folder) -> tuple[Nested, ...]:
    """The repository that somebody made in place of the file that leads to ours."""
    entry = root.entry(".git")
    if entry is None or not entry.is_folder:
        return ()
    files = take_whole(root, ".git")
    return (Nested(".git", "", "another repository was made in it", files),)


def nested_in(git: Git, root: Folder, census: Census) -> tuple[Nested, ...]:
    """The repositories in a worktree, those in them not counted on their own.

    Raises:
        Unreadable: what is in one of them cannot be told.
    """
    assert git.work_tree is not None
    modules = os.path.join(git.git_dir, MODULES)
    known = dict(_module_folders(modules, _MAX_DEPTH))
    found = [*in_place_of_its_own(root)]
    for path in outermost(census.nested):
        module = _module_of(git.work_tree, path, known)
        if module is None:
            found.append(whole(root, path))
            continue
        inner = [each for each in census.nested if each.startswith(f"{path}/")]
        problem = _problem(known[module], os.path.join(git.work_tree, path))
        for each in inner:
            below = _module_of(git.work_tree, each, known)
            if below is None:
                problem = problem or f"{shown(each)} is a repository of its own"
            else:
                at = os.path.join(git.work_tree, each)
                problem = problem or _problem(known[below], at)
        files = {} if problem is None else take_whole(root, path)
        found.append(Nested(path, module, problem, files, _head(known[module])))
    seen = tuple(f"{each.module}/" for each in found if each.module)
    left = (each for each in modules_in(git.git_dir) if f"{each.module}/" not in seen)
    return (*found, *(each for each in left if not each.module.startswith(seen)))


def modules_in(admin: str) -> tuple[Nested, ...]:
    """The submodules of a worktree, by their repositories alone."""
    known = _module_folders(os.path.join(admin, MODULES), _MAX_DEPTH)
    return tuple(
        Nested("", module, _problem(place, None), {}) for module, place in known
    )


def outermost(paths: Iterable[str]) -> list[str]:
    """Those of some paths that are in none of the others."""
    found: list[str] = []
    for path in sorted(paths, key=len):
        if not any(path.startswith(f"{outer}/") for outer in found):
            found.append(path)
    return sorted(found)


def _module_folders(folder: str, depth: int, at: str = "") -> Iterator[tuple[str, str]]:
    """The repositories below a folder of submodules: name there, and place."""
    if depth == 0:
        raise Unreadable("it has submodules in too many others")
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        place = os.path.join(folder, name)
        where = f"{at}/{name}" if at else name
        if os.path.islink(place) or not os.path.isdir(place):
            continue
        if os.path.exists(os.path.join(place, "HEAD")):
            yield where, place
            inner = os.path.join(place, MODULES)
            yield from _module_folders(inner, depth - 1, f"{where}/{MODULES}")
        else:  # the name of a submodule may have parts
            yield from _module_folders(place, depth - 1, where)


def _module_of(tree: str, path: str, known: dict[str, str]) -> str | None:
    """The module that a folder of the tree is a checkout of, as its `.git` says."""
    place = os.path.join(tree, path)
    with suppress(OSError):
        fd = os.open(os.path.join(place, ".git"), _READ)
        try:
            told = _GIT_FILE.fullmatch(os.fsdecode(os.read(fd, 4096)))
        finally:
            os.close(fd)
        if told is not None:
            real = os.path.realpath(os.path.join(place, told[1].rstrip("\n")))
            for module, folder in known.items():
                if os.path.realpath(folder) == real:
                    return module
    return None


def _problem(git_dir: str, tree: str | None) -> str | None:
    """What a submodule has that its origin has not; None: nothing."""
    named = shown(os.path.basename(git_dir))
    try:
        git = Git(git_dir, tree)
        tips = ["--all", "--reflog"] + (["HEAD"] if git.commit_of("HEAD") else [])
        own = git.run("rev-list", "--max-count=1", *tips, "--not", "--remotes", "--")
        if own:
            return f"the submodule {named} has commits that are on no remote"
        if tree is None:
            return None
        told = git.run(
            *("status", "--porcelain", "--untracked-files=all", "--ignored"),
            "--ignore-submodules=none",
        )
    except GitFailed as problem:
        return f"the submodule {named} cannot be read: {problem}"
    return f"the submodule {named} has changes" if told else None


def _head(git_dir: str) -> str | None:
    try:
        return Git(git_dir).commit_of("HEAD")
    except GitFailed:
        return None
