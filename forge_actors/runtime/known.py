"""The registered repositories of a runtime in memory, as the store has them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from forge_actors.domain.changes import RepositoryChanged
from forge_actors.domain.errors import NotFound, StoreFailed
from forge_actors.domain.requests import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.changes import RepositoryAdded
    from forge_actors.domain.ports import Clock, Git
    from forge_actors.domain.repositories import Repository
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.ids import IdSource


#: Device, inode and time of the last change of the file with a repository's id.
Mark = tuple[int, int, int]


class KnownRepositories:
    """Every repository that is not removed, by id, by name and by inode."""

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
        #: Of those that were where they should be: what the file with the id was then.
        self._marks: dict[str, Mark] = {}
        #: Told the id of one whose jobs followed it to another folder, once durable.
        self.relocated: Callable[[str], object] = _nobody
        #: The same for one that is no more.
        self.removed: Callable[[str], object] = _nobody

    def all(self) -> list[Repository]:
        return sorted(self._by_id.values(), key=lambda repo: repo.name)

    def get(self, repo_id: str) -> Repository | None:
        return self._by_id.get(repo_id)

    def named(self, name: str) -> Repository:
        """The repository of this name or id.

        Raises:
            NotFound: there is none; the nearest name is given.
        """
        repo = self._by_id.get(name) or self._by_name.get(name)
        if repo is None:
            near = nearest(name, self._by_name)
            hint = f"; did you mean {near!r}?" if near else ""
            raise NotFound(f"repo: no repository is called {name!r}{hint}")
        return repo

    def _active(self, repo: Repository) -> int:
        return int(self._store.read_pending("active_of_repository", repo.id)[0][0])

    async def _save(
        self, changes: Sequence[RepositoryAdded | RepositoryChanged]
    ) -> None:
        """Save and hold what changes; as it was before if it cannot be saved."""
        before = [self._by_id.get(change.repository.id) for change in changes]
        other = [each for each in changes if isinstance(each, RepositoryChanged)]
        moved = [each.repository.id for each in other if each.moved is not None]
        gone = [each.repository.id for each in other if each.repository.removed_at]
        if moved or gone:
            # Before anybody is told of jobs that were accepted at the new place.
            saved = self._store.save(changes, then=partial(self._tell, moved, gone))
        else:
            saved = self._store.save(changes)
        after = [change.repository for change in changes]
        self._exchange(before, [repo for repo in after if repo.removed_at is None])
        try:
            await saved.wait()
        except StoreFailed:
            self._exchange(after, [repo for repo in before if repo is not None])
            raise

    def _tell(self, moved: Sequence[str], gone: Sequence[str] = ()) -> None:
        for repo in moved:
            self.relocated(repo)
        for repo in gone:
            self.removed(repo)

    def _save_soon(self, change: RepositoryChanged) -> bool:
        """Hold a change now and save it without waiting; False if it cannot be."""
        repo = change.repository
        try:
            self._store.save([change], then=partial(self._tell, [repo.id]))
        except StoreFailed:
            return False
        self._exchange([self._by_id.get(repo.id)], [repo])
        return True

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
        self._marks.pop(repo.id, None)
        self._by_id.pop(repo.id, None)
        self._by_name.pop(repo.name, None)
        self._by_inode.pop((repo.device, repo.inode), None)


def _nobody(_: str) -> None:
    """Nobody owns jobs yet; whoever will loads them as they are saved."""
