"""A home with a worktree in it that is about to be removed, and what is found after."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

from forge_actors.domain.removal import Limits, Use
from forge_actors.domain.worktrees import Worktree
from forge_actors.edges.cleanup.folders import opened_home
from forge_actors.edges.cleanup.worktrees.occupants import occupants
from forge_actors.edges.cleanup.worktrees.removal import Outcome, Removal, Subject

if TYPE_CHECKING:
    from collections.abc import Iterable

NOW = 1_800_000_000.0
#: Of no other process that runs these tests at the same time.
JOB = f"2xq1c7d8k3m5{os.getpid():07d}"
REPO = "1aaaaaaaaaaaaaaaaaa"
BRANCH = "forge/work"
#: Where the worktree is in the home.
TREE = f"worktrees/{REPO}/{JOB}"


def git(folder: Path, *words: str, ok: bool = True) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], capture_output=True, check=False
    )
    assert not ok or done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8", "surrogateescape").strip()


class Records:
    """What a removal is told, and what it has recorded."""

    def __init__(self) -> None:
        self.records: list[tuple[Worktree, str]] = []
        self.job: str | None = None

    def use(self, worktree: Worktree, folders: tuple[str, ...]) -> Use:
        return Use(self.job, occupants(folders, worktree.id))

    def record(self, worktree: Worktree, step: str) -> None:
        self.records.append((worktree, step))

    def now(self) -> float:
        return NOW


class Lab:
    """One home, one repository, one worktree."""

    def __init__(self, place: Path, *, object_format: str = "sha1") -> None:
        self.home = place / "home"
        self.repo = place / "repo"
        self.home.mkdir(mode=0o700)
        self.repo.mkdir()
        form = f"--object-format={object_format}"
        # Without examples of hooks: some tests copy the repository at each step.
        git(self.repo, "init", "-q", "-b", "main", "--template=", form)
        self.write(self.repo, {"a.txt": "a\n", "b.txt": "b\n", ".gitignore": "*.log\n"})
        self.commit(self.repo, "first")
        self.path = TREE
        self.tree = self.home / self.path
        git(self.repo, "worktree", "add", "-q", "-b", BRANCH, str(self.tree), "HEAD")
        self.base = git(self.repo, "rev-parse", "HEAD")
        self.facts = Records()
        self.worktree = Worktree(
            JOB, REPO, self.path, BRANCH, NOW, "ready", None, self.base
        )

    @classmethod
    def found(cls, place: Path) -> Lab:
        """One that was copied to a place from where it was made."""
        lab = cls.__new__(cls)
        lab.home, lab.repo = place / "home", place / "repo"
        lab.path = TREE
        lab.tree = lab.home / lab.path
        lab.base = git(lab.repo, "rev-list", "--max-parents=0", "main")
        lab.facts = Records()
        lab.worktree = Worktree(
            JOB, REPO, lab.path, BRANCH, NOW, "ready", None, lab.base
        )
        return lab

    @property
    def preserved(self) -> Path:
        return self.home / "preserved" / JOB

    @staticmethod
    def write(folder: Path, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    @staticmethod
    def commit(folder: Path, message: str) -> str:
        git(folder, "add", "-A")
        git(folder, "commit", "-q", "-m", message)
        return git(folder, "rev-parse", "HEAD")

    def subject(self) -> Subject:
        common = self.repo / ".git"
        if not common.exists():
            return Subject(self.worktree, str(common), 1, 1)
        status = common.stat()
        return Subject(self.worktree, str(common), status.st_dev, status.st_ino)

    def remove(
        self,
        *,
        force: bool = False,
        limits: Limits | None = None,
        kind: type[Removal] = Removal,
    ) -> Outcome:
        """One try; what it recorded is what the next one begins with."""
        with opened_home(os.path.realpath(self.home)) as home:
            removal = kind(
                home, self.subject(), limits or Limits(), self.facts, force=force
            )
            outcome = removal.run()
        if self.facts.records:
            self.worktree = self.facts.records[-1][0]
        return outcome

    def contents(self) -> set[str]:
        """The content of every file that can be found anywhere."""
        found: set[str] = set()
        for path in (self.tree, Path(f"{self.tree}.removing")):
            found |= _of_files(path)
        found |= _of_archives(self.preserved)
        if (self.repo / ".git").exists():
            found |= _of_refs(self.repo, self.tree)
            found |= _of_bundle(self.repo, self.preserved)
        return found

    def check_store(self) -> None:
        told = subprocess.run(
            ["git", "-C", str(self.repo), "fsck", "--full", "--strict"],
            capture_output=True,
            check=False,
        )
        assert told.returncode == 0, told.stdout + told.stderr

    def refs(self) -> dict[str, str]:
        lines = git(self.repo, "for-each-ref", "--format=%(refname) %(objectname)")
        return dict(line.split(" ") for line in lines.splitlines())


def _of_files(folder: Path) -> set[str]:
    return {
        path.read_text(errors="surrogateescape")
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and path.name != ".git"
    }


def _of_archives(preserved: Path) -> set[str]:
    found = set()
    for path in preserved.glob("*.tar"):
        with tarfile.open(path) as tar:
            for member in tar:
                file = tar.extractfile(member) if member.isfile() else None
                if file is not None:
                    found.add(file.read().decode("utf-8", "surrogateescape"))
    return found


def _of_refs(repo: Path, tree: Path) -> set[str]:
    """The content of every blob that some ref reaches, and of what the worktree, if
    git knows it yet, has staged and its HEAD reaches."""
    if tree.exists() and git(tree, "rev-parse", "HEAD", ok=False) != "":
        reached = git(tree, "rev-list", "--objects", "HEAD", "--glob=refs/*")
        lines = git(tree, "ls-files", "--stage").splitlines()
        staged = [line.split(" ")[1] for line in lines]
    else:
        reached, staged = git(repo, "rev-list", "--objects", "--glob=refs/*"), []
    return _blobs(
        repo, [*(line.split(" ")[0] for line in reached.split("\n")), *staged]
    )


def _blobs(
    repo: Path, names: Iterable[str], env: dict[str, str] | None = None
) -> set[str]:
    done = subprocess.run(
        ["git", "-C", str(repo), "cat-file", "--batch"],
        input="\n".join(names).encode(),
        capture_output=True,
        check=True,
        env=env,
    )
    found, rest = set(), done.stdout
    while rest:
        head, _, rest = rest.partition(b"\n")
        _, kind, size = head.split()
        if kind in (b"blob", b"commit"):
            found.add(rest[: int(size)].decode("utf-8", "surrogateescape"))
        rest = rest[int(size) + 1 :]
    return found


def _of_bundle(repo: Path, preserved: Path) -> set[str]:
    """What is in the bundle; its objects come into a store beside that of the
    repository."""
    bundle = preserved / "commits.bundle"
    if not bundle.exists():
        return set()
    beside = preserved.parent / "objects"
    beside.mkdir()
    env = {
        **os.environ,
        "GIT_OBJECT_DIRECTORY": str(beside),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(repo / ".git" / "objects"),
    }
    try:
        words = ["git", "-C", str(repo), "bundle", "unbundle", str(bundle)]
        told = subprocess.check_output(words, env=env, text=True)
        heads = [line.split(" ")[0] for line in told.splitlines()]
        words = ["git", "-C", str(repo), "rev-list", "--objects", *heads]
        reached = subprocess.check_output(words, env=env).decode("utf-8", "replace")
        return _blobs(repo, [line.split(" ")[0] for line in reached.splitlines()], env)
    finally:
        shutil.rmtree(beside)
