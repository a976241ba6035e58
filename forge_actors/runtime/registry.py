"""The registry of repositories: identity is git's common directory, not a path.

A repository is recognised by the inode of that directory together with an id that is
written into it. The inode alone would be another's once the folder is deleted, and the
id alone would be a copy's as well.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.changes import RepositoryAdded, RepositoryChanged
from forge_actors.domain.errors import InvalidInput, NotFound, Refused, StoreFailed
from forge_actors.domain.events import Event
from forge_actors.domain.repositories import (
    Checkout,
    Repository,
    check_name,
    name_from_folder,
)
from forge_actors.domain.requests import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.ports import Clock, Git
    from forge_actors.domain.repositories import Identity
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
        repo = self._recognise(checkout, self._identity(checkout))
        if repo is None:
            raise NotFound(
                f"repo: {checkout.root} is not registered;"
                f" add it with: forge-actors repo add {checkout.root}"
            )
        return await self._follow(repo, checkout), checkout

    async def add(self, path: str, name: str | None) -> tuple[Repository, str | None]:
        """Register the repository of a folder; one that is known is returned as it is.

        The second value says so, or is None.

        Raises:
            InvalidInput: no git work tree, or its id cannot be written into it.
            Refused: the name is another's, or the repository has another name.
        """
        if name is not None:
            check_name(name)
        checkout = await self._git.checkout(path)
        identity = self._identity(checkout)
        known = self._recognise(checkout, identity)
        if known is None:
            return await self._register(checkout, identity, name)
        if name not in (None, known.name):
            raise Refused(
                f"name: {checkout.root} is already registered as {known.name!r}"
            )
        repo = await self._follow(known, checkout)
        note = f"already registered as {repo.name!r}"
        if repo.path != known.path:
            note += f"; it was moved here from {known.path}"
        return repo, note

    async def _register(
        self, checkout: Checkout, identity: Identity, name: str | None
    ) -> tuple[Repository, str | None]:
        wanted = name or name_from_folder(checkout.root.rpartition("/")[2])
        now = self._clock.now()
        holder = self._by_name.get(wanted)
        given_up = self._give_up(checkout, holder, now)
        if holder is not None and all(
            change.repository.id != holder.id or change.repository.removed_at is None
            for change in given_up
        ):
            problem = f"is the name of {holder.path}: remove it"
            if holder.common_dir == checkout.common_dir:
                problem = (
                    f"was here before and has {self._active(holder)} jobs that wait or"
                    " run; end them first"
                )
            raise Refused(f"name: {wanted!r} {problem}, or choose another with --name")
        repo_id = self._usable_id(identity)
        if repo_id is None:
            repo_id = self._ids.make(now)
            self._git.add_id(checkout.common_dir, repo_id)
        repo = Repository(
            id=repo_id,
            name=wanted,
            path=checkout.root,
            common_dir=checkout.common_dir,
            device=checkout.device,
            inode=checkout.inode,
            added_at=now,
        )
        data: dict[str, object] = {"name": wanted, "path": repo.path}
        event = Event("repository_added", now, repo.id, data=data)
        await self._save([*given_up, RepositoryAdded(repo, event)])
        replaced = [c.repository for c in given_up if c.repository.removed_at]
        if not replaced:
            return repo, None
        return repo, f"{replaced[0].name!r}, which was here before, is gone"

    def _identity(self, checkout: Checkout) -> Identity:
        """Read when it is needed, not before: another caller may have added an id."""
        identity = self._git.identity(checkout.common_dir)
        if identity is None:
            raise InvalidInput("path", f"{checkout.common_dir} does not exist")
        return identity

    def _recognise(self, checkout: Checkout, identity: Identity) -> Repository | None:
        """The registered repository that a checkout belongs to."""
        repo = self._by_inode.get((checkout.device, checkout.inode))
        if repo is not None and repo.id in identity.ids:
            return repo
        for repo_id in identity.ids:
            repo = self._by_id.get(repo_id)
            if repo is not None and not self._has_other_place(repo, checkout):
                return repo
        return None

    def _has_other_place(self, repo: Repository, checkout: Checkout) -> bool:
        """Whether it is where it was registered, so that the checkout is of a copy."""
        there = self._git.identity(repo.common_dir)
        if there is None or repo.id not in there.ids:
            return False
        return (there.device, there.inode) != (checkout.device, checkout.inode)

    async def _follow(self, repo: Repository, checkout: Checkout) -> Repository:
        """The recognised repository with the place where it is now."""
        place = (checkout.device, checkout.inode)
        there = self._git.identity(repo.common_dir)
        if there is not None and (there.device, there.inode) == place:
            # Not moved, if perhaps spelt another way: through a bind mount, say. But
            # the work tree it was registered with may be gone, and the numbers of
            # disks may have changed.
            if os.path.isdir(repo.path) and place == (repo.device, repo.inode):
                return repo
            common_dir = repo.common_dir
        else:
            common_dir = checkout.common_dir
        path = repo.path
        if common_dir != repo.common_dir or not os.path.isdir(path):
            path = _main_work_tree(checkout)
        now = self._clock.now()
        moved = structs.replace(
            repo,
            path=path,
            common_dir=common_dir,
            device=checkout.device,
            inode=checkout.inode,
        )
        data: dict[str, object] = {"name": repo.name, "from": repo.path, "to": path}
        event = Event("repository_moved", now, repo.id, data=data)
        given_up = self._give_up(checkout, None, now, but=repo)
        await self._save([*given_up, RepositoryChanged(moved, event)])
        return moved

    def _give_up(
        self,
        checkout: Checkout,
        holder: Repository | None,
        now: float,
        *,
        but: Repository | None = None,
    ) -> list[RepositoryChanged]:
        """What becomes of registrations whose inode or place is a checkout's now.

        One of the same place cannot come back there and is removed, unless jobs of it
        are active. One that lost only its inode may have gone to another disk, or come
        back from a backup, and its id would find it: it is kept, with numbers that no
        folder has, as the store wants those of two repositories to differ.
        """
        changes = []
        at_inode = self._by_inode.get((checkout.device, checkout.inode))
        for repo in dict.fromkeys((at_inode, holder)):
            if repo is None or (but is not None and repo.id == but.id):
                continue
            same_place = repo.common_dir == checkout.common_dir
            if same_place and not self._active(repo):
                gone = structs.replace(repo, removed_at=now, enabled=False)
                kind = "repository_removed"
            elif repo is at_inode:
                lowest = min(known.inode for known in self._by_id.values())
                gone = structs.replace(repo, device=-1, inode=min(lowest, 0) - 1)
                kind = "repository_lost"
            else:
                continue
            data: dict[str, object] = {"name": repo.name, "reason": "replaced"}
            changes.append(
                RepositoryChanged(gone, Event(kind, now, repo.id, data=data))
            )
        return changes

    def _usable_id(self, identity: Identity) -> str | None:
        """An id that another home gave to the repository, which is kept.

        Not that of a repository that was removed here, and none of a copy: its ids mean
        its original.
        """
        if any(repo_id in self._by_id for repo_id in identity.ids):
            return None
        for repo_id in identity.ids:
            if not self._store.read_pending("load_repository", repo_id):
                return repo_id
        return None

    def _active(self, repo: Repository) -> int:
        return int(self._store.read_pending("active_of_repository", repo.id)[0][0])

    async def remove(self, repo: Repository) -> Repository:
        """Take a repository out; its id is never used again.

        Raises:
            Refused: jobs of it wait or run.
        """
        active = self._active(repo)
        if active:
            raise Refused(
                f"{repo.name} has {active} jobs that wait or run;"
                " end them first, or use --cancel"
            )
        now = self._clock.now()
        removed = structs.replace(repo, removed_at=now, enabled=False)
        event = Event("repository_removed", now, repo.id, data={"name": repo.name})
        await self._save([RepositoryChanged(removed, event)])
        return removed

    async def enable(self, repo: Repository, enabled: bool) -> Repository:
        """Let its jobs start, or not."""
        changed = structs.replace(repo, enabled=enabled)
        kind = "repository_enabled" if enabled else "repository_disabled"
        event = Event(kind, self._clock.now(), repo.id, data={"name": repo.name})
        await self._save([RepositoryChanged(changed, event)])
        return changed

    async def _save(
        self, changes: Sequence[RepositoryAdded | RepositoryChanged]
    ) -> None:
        """Save and hold what changes; as it was before if it cannot be saved."""
        before = [self._by_id.get(change.repository.id) for change in changes]
        saved = self._store.save(changes)
        after = [change.repository for change in changes]
        self._exchange(before, [repo for repo in after if repo.removed_at is None])
        try:
            await saved.wait()
        except StoreFailed:
            self._exchange(after, [repo for repo in before if repo is not None])
            raise

    def _exchange(
        self, old: Sequence[Repository | None], new: Sequence[Repository]
    ) -> None:
        for repo in old:
            if repo is not None:
                self._drop(repo)
        for repo in new:
            self._insert(repo)

    def _insert(self, repo: Repository) -> None:
        self._by_id[repo.id] = self._by_name[repo.name] = repo
        self._by_inode[repo.device, repo.inode] = repo

    def _drop(self, repo: Repository) -> None:
        self._by_id.pop(repo.id, None)
        self._by_name.pop(repo.name, None)
        self._by_inode.pop((repo.device, repo.inode), None)


def _main_work_tree(checkout: Checkout) -> str:
    """The first work tree of the checkout's repository, if it has one."""
    folder, name = os.path.split(checkout.common_dir)
    return checkout.root if checkout.main or name != ".git" else folder
