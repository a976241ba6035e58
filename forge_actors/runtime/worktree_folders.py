"""The folders of worktrees in a home: what must not go with it unseen."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.runtime.homes import ARTIFACTS, PRESERVED, WORKTREES

if TYPE_CHECKING:
    from pathlib import Path


def worktree_folders(home: Path) -> list[Path]:
    """Every folder of a worktree, and whatever else lies where they are."""
    found: list[Path] = []
    around = home / WORKTREES
    if around.is_symlink():
        return found
    with suppress(FileNotFoundError, NotADirectoryError):
        for repository in sorted(around.iterdir()):
            inner = repository.is_dir() and not repository.is_symlink()
            found += sorted(repository.iterdir()) if inner else [repository]
    return found


def saved_work(home: Path) -> list[Path]:
    """Where files or commits lie that were saved of worktrees and may be only there."""
    around = home / PRESERVED
    if around.is_symlink():
        return []
    patterns = ("files.tar", "ignored.tar", "commits.bundle")
    found = (path.parent for name in patterns for path in around.glob(f"*/{name}"))
    return sorted(set(found))


def has_artifacts(home: Path) -> bool:
    """Whether files were collected from jobs, which somebody has asked for."""
    # Files have numbers; a manifest and drafts have names.
    found = (home / ARTIFACTS).glob("*/[0-9]*/*")
    return any(path.name.isdigit() for path in found)


def discard(home: Path) -> bool:
    """Remove a home that nobody needs any more, unless it has worktrees, or what was
    saved of some: that may be nowhere else. Whether it was removed."""
    if worktree_folders(home) or saved_work(home):
        return False
    shutil.rmtree(home, ignore_errors=True)
    return True
