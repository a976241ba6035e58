"""Where the repositories of a simulated world are; git knows nothing else of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.repositories import Checkout, Identity

if TYPE_CHECKING:
    from forge_actors.domain.relocation import Relocation
    from forge_actors.domain.repositories import Repository


class Places:
    """The port `Git`, and the folders it looks at."""

    def __init__(self) -> None:
        #: By common directory.
        self._there: dict[str, Identity] = {}
        #: The work trees, by the names of their repositories.
        self.paths: dict[str, str] = {}
        self._moves = 0

    def add(self, repo: Repository) -> None:
        identity = Identity(repo.device, repo.inode, (repo.id,))
        self._there[repo.common_dir] = identity
        self.paths[repo.name] = repo.path

    def move(self, name: str) -> None:
        """Move it to where nothing has been before."""
        self._moves += 1
        there = self._there.pop(f"{self.paths[name]}/.git")
        self.paths[name] = f"/moved-{self._moves}/{name}"
        self._there[f"{self.paths[name]}/.git"] = there

    async def checkout(self, path: str) -> Checkout:
        found = self._there.get(f"{path}/.git")
        if found is None:
            raise InvalidInput("path", f"{path} does not exist")
        return Checkout(path, f"{path}/.git", found.device, found.inode, main=True)

    def identity(self, common_dir: str) -> Identity | None:
        return self._there.get(common_dir)

    def add_id(self, common_dir: str, repo_id: str) -> None:
        known = self._there[common_dir]
        ids = (repo_id, *known.ids)
        self._there[common_dir] = Identity(known.device, known.inode, ids)

    def seek(self, common_dir: str, repo_id: str) -> list[tuple[str, Identity]]:
        """They are moved far away: nobody sees where to."""
        return []

    def relink(self, common_dir: str, old: str, moved: Relocation) -> None:
        """No work tree here is linked."""
