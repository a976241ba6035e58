"""The registry of repositories: identity is git's common directory, not a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.changes import RepositoryAdded, RepositoryChanged
from forge_actors.domain.errors import NotFound, Refused, StoreFailed
from forge_actors.domain.events import Event
from forge_actors.domain.repositories import (
    Checkout,
    Repository,
    check_name,
    name_from_folder,
)
from forge_actors.domain.requests import nearest

if TYPE_CHECKING:
    from forge_actors.domain.ports import Clock, Git
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.ids import IdSource


class Registry:
    """Every repository that is not removed, as the store has it."""

    def __init__(
        self, store: SqliteStore, git: Git, clock: Clock, ids: IdSource
    ) -> None:
        self._store = store
        self._git = git
        self._clock = clock
        self._ids = ids
        self._by_id = {repo.id: repo for repo in store.repositories()}
        self._by_name = {repo.name: repo for repo in self._by_id.values()}
        self._by_inode = {
            (repo.device, repo.inode): repo for repo in self._by_id.values()
        }

    def all(self) -> list[Repository]:
        return sorted(self._by_id.values(), key=lambda repo: repo.name)

    def get(self, repo_id: str) -> Repository | None:
        return self._by_id.get(repo_id)

    def named(self, name: str) -> Repository:
        """The repository of this name or id.

        Raises:
            NotFound: there is none; the nearest name is given.
        """
        repo = self._by_name.get(name) or self._by_id.get(name)
        if repo is None:
            near = nearest(name, self._by_name)
            hint = f"; did you mean {near!r}?" if near else ""
            raise NotFound(f"repo: no repository is called {name!r}{hint}")
        return repo

    async def find(self, name_or_path: str) -> tuple[Repository, Checkout | None]:
        """The repository a caller means; with a path also the checkout it is in.

        Raises:
            NotFound: no such name, or the repository of the path is not registered.
            InvalidInput: the path is in no git work tree.
        """
        if "/" not in name_or_path and name_or_path not in (".", ".."):
            return self.named(name_or_path), None
        checkout = await self._git.checkout(name_or_path)
        repo = self._by_inode.get((checkout.device, checkout.inode))
        if repo is None:
            raise NotFound(
                f"repo: {checkout.root} is not registered;"
                f" add it with: forge-actors repo add {checkout.root}"
            )
        return repo, checkout

    async def add(self, path: str, name: str | None) -> tuple[Repository, str | None]:
        """Register the repository of a folder; one that is known is returned as it is.

        The second value says so, or is None.
        """
        if name is not None:
            check_name(name)
        checkout = await self._git.checkout(path)
        known = self._by_inode.get((checkout.device, checkout.inode))
        if known is not None:
            if name not in (None, known.name):
                raise Refused(
                    f"name: {checkout.root} is already registered as {known.name!r}"
                )
            return known, f"already registered as {known.name!r}"
        wanted = name or name_from_folder(checkout.root.rpartition("/")[2])
        if wanted in self._by_name:
            raise Refused(
                f"name: {wanted!r} is the name of {self._by_name[wanted].path};"
                " choose another with --name"
            )
        now = self._clock.now()
        repo = Repository(
            id=self._ids.make(now),
            name=wanted,
            path=checkout.root,
            common_dir=checkout.common_dir,
            device=checkout.device,
            inode=checkout.inode,
            added_at=now,
        )
        event = Event("repository_added", now, repo.id, data={"name": wanted})
        saved = self._store.save([RepositoryAdded(repo, event)])
        self._insert(repo)
        try:
            await saved.wait()
        except StoreFailed:
            self._drop(repo)
            raise
        return repo, None

    async def remove(self, repo: Repository) -> Repository:
        """Take a repository out; its id is never used again.

        Raises:
            Refused: jobs of it wait or run.
        """
        active = self._store.read_pending("active_of_repository", repo.id)[0][0]
        if active:
            raise Refused(
                f"{repo.name} has {active} jobs that wait or run;"
                " end them first, or use --cancel"
            )
        now = self._clock.now()
        removed = structs.replace(repo, removed_at=now, enabled=False)
        event = Event("repository_removed", now, repo.id, data={"name": repo.name})
        saved = self._store.save([RepositoryChanged(removed, event)])
        self._drop(repo)
        try:
            await saved.wait()
        except StoreFailed:
            self._insert(repo)
            raise
        return removed

    async def enable(self, repo: Repository, enabled: bool) -> Repository:
        """Let its jobs start, or not."""
        changed = structs.replace(repo, enabled=enabled)
        kind = "repository_enabled" if enabled else "repository_disabled"
        event = Event(kind, self._clock.now(), repo.id, data={"name": repo.name})
        saved = self._store.save([RepositoryChanged(changed, event)])
        self._insert(changed)
        try:
            await saved.wait()
        except StoreFailed:
            self._insert(repo)
            raise
        return changed

    def _insert(self, repo: Repository) -> None:
        self._by_id[repo.id] = self._by_name[repo.name] = repo
        self._by_inode[repo.device, repo.inode] = repo

    def _drop(self, repo: Repository) -> None:
        self._by_id.pop(repo.id, None)
        self._by_name.pop(repo.name, None)
        self._by_inode.pop((repo.device, repo.inode), None)
