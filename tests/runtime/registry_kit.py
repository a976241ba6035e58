"""What the tests of the registry share: a store, and git on a disk of wished inodes."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from forge_actors.domain.repositories import Checkout, Identity, Repository
from forge_actors.domain.requests import JobRequest
from forge_actors.edges.git.checkout import GitProgram
from forge_actors.edges.sqlite.store import SqliteStore, open_store
from forge_actors.runtime.admission import Admission
from forge_actors.runtime.ids import IdSource
from forge_actors.runtime.registry import Registry
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.runtime.settings import settings_from
from forge_actors.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path


class NumberedGit(GitProgram):
    """The git program, on a disk that gives the inodes that a test wants."""

    def __init__(self) -> None:
        #: The inode of a git common directory, by its path.
        self.inodes: dict[str, int] = {}

    async def checkout(self, path: str) -> Checkout:
        seen = await super().checkout(path)
        inode = self.inodes.get(seen.common_dir, seen.inode)
        return Checkout(seen.root, seen.common_dir, seen.device, inode, seen.main)

    def identity(self, common_dir: str) -> Identity | None:
        seen = super().identity(common_dir)
        if seen is None:
            return None
        inode = self.inodes.get(common_dir, seen.inode)
        return Identity(seen.device, inode, seen.ids)


class Case:
    def __init__(self, store: SqliteStore) -> None:
        self.store = store
        self.git = NumberedGit()
        self.clock = FakeClock()
        self.ids = IdSource()
        self.registry = Registry(store, self.git, self.clock, self.ids)

    async def add(self, folder: Path, name: str | None = None) -> Repository:
        return (await self.registry.add(str(folder), name))[0]

    async def note(self, folder: Path) -> str | None:
        return (await self.registry.add(str(folder), None))[1]

    async def found(self, folder: Path) -> Repository:
        return (await self.registry.find(str(folder)))[0]

    async def submit(self, repo: str, **options: Any) -> str:
        settings = settings_from({})
        admission = Admission(
            self.store,
            self.registry,
            self.clock,
            self.ids,
            lambda: settings,
            SecretFolder("/nowhere"),
            lambda *_: None,
        )
        [accepted] = await admission.submit([JobRequest(repo, ["true"], **options)])
        return accepted.id

    def reopened(self) -> Registry:
        """What the next service reads from the store."""
        return Registry(self.store, self.git, self.clock, self.ids)

    def events(self) -> list[str]:
        return [event.kind for event in self.store.events(0, 100)]


@asynccontextmanager
async def home(folder: Path) -> AsyncGenerator[Case, None]:
    async with open_store(
        folder / "store.sqlite", repository_workers=4, overtake_after=1800.0
    ) as store:
        yield Case(store)


def id_file(folder: Path) -> Path:
    return folder / ".git" / "forge-actors" / "id"


def ids(folder: Path) -> list[str]:
    return id_file(folder).read_text().split()
