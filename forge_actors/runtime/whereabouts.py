"""Whereabouts: where a registered repository is now, or that it is nowhere.

A repository is recognised by the inode of its git common directory together with an id
that is written into it. The inode alone would be another's once the folder is deleted,
and the id alone would be a copy's as well.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.changes import RepositoryChanged
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.events import Event
from forge_actors.domain.relocation import Relocation, relocation, work_folder
from forge_actors.edges.git.ids import ID_FILE, OUR_FOLDER
from forge_actors.runtime.known import KnownRepositories, Mark

if TYPE_CHECKING:
    from forge_actors.domain.repositories import Checkout, Identity, Repository


class Whereabouts(KnownRepositories):
    """Recognises registered repositories, and follows those that moved."""

    # -- whether it is there ---------------------------------------------------------

    def gone(self, repo_id: str) -> str | None:
        """Why nothing can start in a repository, or None. Asked at every dispatch.

        One that was only moved, to where it surely is the same, is followed.
        """
        repo = self._by_id.get(repo_id)
        if repo is None:
            return None
        mark = self._marks.get(repo_id)
        if mark is not None and mark == _mark_of(repo) and _is_linked(repo):
            return None
        return self._look_closely(repo)

    def _look_closely(self, repo: Repository) -> str | None:
        there = self._git.identity(repo.common_dir)
        if there is not None and repo.id in there.ids:
            if not _is_linked(repo):
                # Else git would work on whatever is around that folder.
                return f"the work tree of its repository is gone: {repo.path}"
            self._renumber(repo, there)
            if (mark := _mark_of(repo)) is not None:
                self._marks[repo.id] = mark
            return None
        place = (repo.device, repo.inode)
        for common_dir, found in self._git.seek(repo.common_dir, repo.id):
            if (found.device, found.inode) == place and self._went(repo, common_dir):
                return None
        if there is None:
            return f"the folder of its repository is gone: {repo.path}"
        return f"another repository is in the folder of its repository: {repo.path}"

    def _renumber(self, repo: Repository, there: Identity) -> None:
        """It is where it was, but came from a backup, or disks have other numbers."""
        place = (there.device, there.inode)
        if place == (repo.device, repo.inode) or place in self._by_inode:
            return
        device, inode = place
        changed = structs.replace(repo, device=device, inode=inode)
        self._save_soon(RepositoryChanged(changed, self._moved_event(repo, changed)))

    def _went(self, repo: Repository, common_dir: str) -> bool:
        """Follow it to its common directory; False if it cannot be followed."""
        path = _moved_along(repo.common_dir, common_dir).path(repo.path)
        moved = structs.replace(repo, path=path, common_dir=common_dir)
        if not _is_linked(moved):
            return False
        return self._save_soon(self._move(repo, moved))

    def candidates(self, repo: Repository) -> list[str]:
        """Folders near its old place that have its id, but may be copies of it."""
        found = self._git.seek(repo.common_dir, repo.id)
        return [work_folder(common_dir) or common_dir for common_dir, _ in found]

    # -- what a folder is ------------------------------------------------------------

    def _identity(self, checkout: Checkout) -> Identity:
        """Read when it is needed, not before: another caller may have added an id."""
        for path in (checkout.root, checkout.common_dir):
            if not path.isprintable() and _has_strange_bytes(path):
                problem = f"the name of {path!r} is not UTF-8: rename the folder"
                raise InvalidInput("path", problem)
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

    # -- following it ----------------------------------------------------------------

    async def _follow(self, repo: Repository, checkout: Checkout) -> Repository:
        """The recognised repository with the place where it is now."""
        place = (checkout.device, checkout.inode)
        if self._is_at(repo.common_dir, checkout):
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
        return await self._go(repo, checkout, path, common_dir)

    def _is_at(self, common_dir: str, checkout: Checkout) -> bool:
        there = self._git.identity(common_dir)
        place = (checkout.device, checkout.inode)
        return there is not None and (there.device, there.inode) == place

    async def _go(
        self,
        repo: Repository,
        checkout: Checkout,
        path: str,
        common_dir: str,
        *,
        told: Relocation | None = None,
    ) -> Repository:
        """Have it there; with `told` somebody says that its jobs are to follow so."""
        moved = structs.replace(
            repo,
            path=path,
            common_dir=common_dir,
            device=checkout.device,
            inode=checkout.inode,
        )
        change = self._move(repo, moved, told)
        given_up = self._give_up(checkout, None, change.event.at, but=repo)
        await self._save([*given_up, change])
        return moved

    def _move(
        self, repo: Repository, moved: Repository, told: Relocation | None = None
    ) -> RepositoryChanged:
        """The change; its linked work trees find it again before anything starts."""
        old, new = repo.common_dir, moved.common_dir
        follows = told
        if old != new:
            if told is None and (work_folder(old) or not _is_linked(repo)):
                follows = relocation(old, new, repo.path, moved.path)
            self._git.relink(new, old, follows or _moved_along(old, new))
        event = self._moved_event(repo, moved, follows)
        return RepositoryChanged(moved, event, follows)

    def _moved_event(
        self, repo: Repository, moved: Repository, follows: Relocation | None = None
    ) -> Event:
        data: dict[str, object] = {
            "name": repo.name,
            "from": repo.path,
            "to": moved.path,
        }
        if follows is not None:
            data["moved"] = (follows.old, follows.new)
        return Event("repository_moved", self._clock.now(), repo.id, data=data)

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


def as_registered(repo: Repository, checkout: Checkout) -> Checkout:
    """The checkout, spelt as the repository is where it is the same folder: a bind
    mount is no other one, and what is claimed there must be the same."""
    if checkout.root != repo.path:
        with suppress(OSError):
            if os.path.samefile(checkout.root, repo.path):
                return structs.replace(checkout, root=repo.path)
    return checkout


def _has_strange_bytes(path: str) -> bool:
    """Whether something of it is no text, which no store and no message takes."""
    return any("\udc80" <= character <= "\udcff" for character in path)


def _mark_of(repo: Repository) -> Mark | None:
    """What the file with its id is: as long as it is that one, so is the repository."""
    try:
        status = os.stat(f"{repo.common_dir}/{OUR_FOLDER}/{ID_FILE}")
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _is_linked(repo: Repository) -> bool:
    """Whether its work tree is there and says to which repository it belongs."""
    link = f"{repo.path}/.git"
    return link == repo.common_dir or os.path.lexists(link)


def _moved_along(old: str, new: str) -> Relocation:
    """The least folder that was moved, if what was the one is the other now."""
    olds, news = old.split("/"), new.split("/")
    while len(olds) > 2 and len(news) > 2 and olds[-1] == news[-1]:
        olds.pop()
        news.pop()
    return Relocation("/".join(olds), "/".join(news))


def _main_work_tree(checkout: Checkout) -> str:
    """The first work tree of the checkout's repository, if it has one."""
    folder = work_folder(checkout.common_dir)
    return checkout.root if checkout.main or folder is None else folder
