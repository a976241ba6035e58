"""What the tests of looking at checkouts share: real repositories, and fake ones."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import trio

from forge_actors.domain.repositories import Repository
from forge_actors.edges.git.status import GitSampler
from forge_actors.edges.watch import FolderWatch
from forge_actors.testing.checkouts import FakeCheckouts, FakeSampler, FakeWatch
from forge_actors.testing.made_changes import repository


def git(folder: Path, *arguments: str, check: bool = True) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], check=check, capture_output=True
    )
    return done.stdout.decode().strip()


def make(folder: Path, *options: str) -> Path:
    """A repository with one commit of one file."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main", *options)
    (folder / "file").write_text("first\n")
    git(folder, "add", "file")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def record(path: Path, repo: str = "repo") -> Repository:
    """The repository of a work tree, as the registry would know it."""
    common = git(path, "rev-parse", "--path-format=absolute", "--git-common-dir")
    status = os.stat(common)
    return Repository(
        repo, path.name, str(path), common, status.st_dev, status.st_ino, 1.0
    )


def hang(path: Path) -> Path:
    """From now on git waits for ever for a filter there; the pipe where it says its
    pid."""
    told = path.parent / "filter.pid"
    os.mkfifo(told)
    program = path.parent / "filter"
    # Opened for both, so that nobody has to read.
    program.write_text(f"#!/bin/sh\nexec 3<>{told}\necho $$ >&3\nexec sleep 1000\n")
    program.chmod(0o755)
    git(path, "config", "filter.slow.clean", str(program))
    (path / ".git" / "info").mkdir(exist_ok=True)
    (path / ".git" / "info" / "attributes").write_text("file filter=slow\n")
    (path / "file").write_text("FIRST\n")  # as long as before: git has to look
    os.utime(path / "file", (1, 1))
    return told


@contextmanager
def told_pid(told: Path) -> Iterator[Callable[[], Awaitable[int]]]:
    """What waits for the pid that a filter says."""
    line = os.open(told, os.O_RDWR | os.O_NONBLOCK)

    async def wait() -> int:
        await trio.lowlevel.wait_readable(line)
        return int(os.read(line, 100))

    try:
        yield wait
    finally:
        os.close(line)


class RealPlace:
    """Two repositories of git, looked at and watched by the real edges."""

    def __init__(self, folder: Path) -> None:
        self.sampler = GitSampler()
        self.watch = FolderWatch()
        self.path = make(folder / "app")
        self.repository = record(self.path)
        self.other = record(make(folder / "other"), "other")

    def change(self, repository: Repository) -> None:
        (Path(repository.path) / "new").write_text("new\n")

    def remove(self) -> None:
        shutil.rmtree(self.path)

    def hang(self) -> None:
        hang(self.path)


class FakePlace:
    """The same two without git and files."""

    def __init__(self) -> None:
        self._checkouts = FakeCheckouts()
        self.sampler = FakeSampler(self._checkouts)
        self.watch = FakeWatch(self._checkouts)
        self.repository = repository().repository
        self.other = repository("other").repository

    def change(self, repository: Repository) -> None:
        self._checkouts.change(repository.id)

    def remove(self) -> None:
        self._checkouts.gone.add(self.repository.id)

    def hang(self) -> None:
        self._checkouts.hangs.add(self.repository.id)
