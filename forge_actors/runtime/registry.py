"""The registry: identity is git's common directory, not a path."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.changes import RepositoryAdded, RepositoryChanged
from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.events import Event
from forge_actors.domain.relocation import Relocation
from forge_actors.domain.repositories import (
    Checkout,
    Repository,
    check_name,
    name_from_folder,
)
from forge_actors.runtime.whereabouts import Whereabouts, as_registered

if TYPE_CHECKING:
    from forge_actors.domain.repositories import Identity


class Registry(Whereabouts):
    """What callers may do with repositories."""

    async def find(self, name_or_path: str) -> tuple[Repository, Checkout | None]:
        """The repository a caller means; with a path also the checkout it is in.

        Raises:
            NotFound: no such name, or the repository of the path is not registered.
            InvalidInput: the path is in no git work tree.
        """
        repo, checkout = await self._meant(name_or_path)
        if checkout is None:
            return repo, None
        repo = await self._follow(repo, checkout)
        return repo, as_registered(repo, checkout)

    async def _meant(self, name_or_path: str) -> tuple[Repository, Checkout | None]:
        if "/" not in name_or_path and name_or_path not in (".", ".."):
            return self.named(name_or_path), None
        checkout = await self._git.checkout(name_or_path)
        repo = self._recognise(checkout, self._identity(checkout))
        if repo is None:
            raise NotFound(
                f"repo: {checkout.root} is not registered;"
                f" add it with: forge-actors repo add {checkout.root}"
            )
        return repo, checkout

    async def look(self, name_or_path: str) -> tuple[Repository, str | None]:
        """The repository, looked for if it is not where it was; what was found out.

        Raises:
            NotFound, InvalidInput: as `find`.
        """
        known, checkout = await self._meant(name_or_path)
        repo = known if checkout is None else await self._follow(known, checkout)
        problem = self.gone(repo.id)
        repo = self._by_id.get(repo.id, repo)
        if problem is None:
            moved = repo.path != known.path
            return repo, f"it was moved here from {known.path}" if moved else None
        found = self.candidates(repo)
        where = found[0] if found else "PATH"
        if found:
            problem += f"; its id is in {', '.join(found)}, which may be a copy"
        return repo, (
            f"{problem}; if you moved it:"
            f" forge-actors repo relocate {repo.name} {where}"
        )

    async def relocate(self, name: str, path: str) -> tuple[Repository, str]:
        """Have a repository where somebody moved it, and its jobs with it.

        Raises:
            NotFound: there is none of this name.
            InvalidInput: the path is in no git work tree.
            Refused: that is another repository, or a copy.
        """
        repo = self.named(name)
        checkout = await self._git.checkout(path)
        identity = self._identity(checkout)
        add = f"forge-actors repo add {checkout.root} --name NAME"
        if repo.id not in identity.ids:
            raise Refused(
                f"{checkout.root} is not {repo.name}: it does not have its id; to work"
                f" there too: {add}"
            )
        if self._has_other_place(repo, checkout):
            raise Refused(
                f"{checkout.root} is a copy of {repo.name}, which is still at"
                f" {repo.path}; to work there too: {add}"
            )
        other = self._recognise(checkout, identity)
        if other is not None and other.id != repo.id:
            raise Refused(f"{checkout.root} is registered as {other.name!r}")
        before, here = repo.path, as_registered(repo, checkout).root
        if before != here and self._is_at(repo.common_dir, checkout):
            # The repository is where it was: another work tree of it is meant.
            gone = not os.path.lexists(before)
            told = Relocation(before, here) if gone else None
            repo = await self._go(repo, checkout, here, repo.common_dir, told=told)
        else:
            repo = await self._follow(repo, checkout)
        if repo.path == before:
            return repo, f"it is at {before} already"
        return repo, f"it was moved here from {before}"

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
        if (holder := self._by_name.get(wanted)) is not None:
            self.gone(holder.id)  # it may only have been renamed
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
