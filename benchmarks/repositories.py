"""Real git repositories to measure with."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_IDENTITY = {
    "GIT_AUTHOR_NAME": "Benchmark",
    "GIT_AUTHOR_EMAIL": "benchmark@localhost",
    "GIT_COMMITTER_NAME": "Benchmark",
    "GIT_COMMITTER_EMAIL": "benchmark@localhost",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def make_repositories(folder: Path, count: int, prefix: str = "repo") -> list[Path]:
    """`count` repositories with one commit each: one by git, the others its copies."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{prefix}-{number:05d}" for number in range(count)]
    first = paths[0]
    _git("init", "--quiet", "--template=", str(first))
    (first / "README").write_text("A repository to measure with.\n")
    _git("-C", str(first), "add", "README")
    _git("-C", str(first), "commit", "--quiet", "--message", "The only commit")
    for path in paths[1:]:
        shutil.copytree(first, path)
    return paths


def make_large(path: Path, files: int) -> Path:
    """A repository with one commit of many small files, a hundred folders of them."""
    _git("init", "--quiet", "--template=", str(path))
    for number in range(files):
        folder = path / f"folder-{number % 100:02d}"
        folder.mkdir(exist_ok=True)
        (folder / f"file-{number:05d}").write_text(f"{number}\n" * 50)
    # Its objects need not survive a power cut, which would take minutes.
    fast = ("-C", str(path), "-c", "core.fsync=none")
    _git(*fast, "add", "--all")
    _git(*fast, "commit", "--quiet", "--message", "The only commit")
    return path


def _git(*arguments: str) -> None:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    subprocess.run(["git", *arguments], check=True, env=inherited | _IDENTITY)
