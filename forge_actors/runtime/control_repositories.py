"""What can be asked of the repositories."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.actors.repository_messages import SetEnabled
from forge_actors.actors.supervisor_messages import TakeBack
from forge_actors.domain.changes import TakenBack
from forge_actors.domain.errors import MailboxClosed, SetAsideError
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import STATES, WAITING
from forge_actors.domain.repositories import RepositoryDetails, RepositoryView
from forge_actors.runtime.control_base import ControlBase
from forge_actors.runtime.job_rows import pieces
from forge_actors.runtime.views import timestamp

if TYPE_CHECKING:
    from forge_actors.domain.repositories import Repository


class RepositoryControl(ControlBase):
    """The part of the port `Control` that is about repositories."""

    async def add_repository(
        self, path: str, name: str | None = None
    ) -> RepositoryView:
        repo, note = await self._registry.add(path, name)
        return self._repository_view(repo, note=note)

    async def repositories(self) -> list[RepositoryView]:
        counts = self._store.tally.waiting_and_running()
        return [
            self._repository_view(repo, counts.get(repo.id, (0, 0)))
            for repo in self._registry.all()
        ]

    async def repository(self, name: str) -> RepositoryDetails:
        repo, note = await self._registry.look(name)
        found = self._store.tally.of_repository(repo.id)
        counts: dict[str, int] = {
            state: found[state] for state in STATES if state in found
        }
        running = self._store.tally.running_of(repo.id)
        waiting = sum(counts.get(state, 0) for state in WAITING)
        # The registry's own are those of the start of the runtime.
        [(fence, last)] = self._store.read("repository_turn", repo.id)
        return RepositoryDetails(
            **structs.asdict(
                self._repository_view(repo, (waiting, len(running)), note)
            ),
            common_dir=repo.common_dir,
            fence=fence,
            last_dispatch=timestamp(last) if last else None,
            counts=counts,
            running_jobs=running,
        )

    async def relocate_repository(self, name: str, path: str) -> RepositoryView:
        repo, note = await self._registry.relocate(name, path)
        running = len(self._store.tally.running_of(repo.id))
        waiting = self._store.tally.active_of(repo.id) - running
        return self._repository_view(repo, (waiting, running), note)

    async def remove_repository(
        self, name: str, *, cancel: bool = False
    ) -> RepositoryView:
        repo, _ = await self._registry.find(name)
        if cancel:
            rows = self._store.read("active_ids", repo.id)
            active = [str(row[0]) for row in rows]
            for piece in pieces(active):
                await self._cancel(piece, repo.id, None)
            await self._endings.wait(active)
        return self._repository_view(await self._registry.remove(repo))

    async def enable_repository(self, name: str, *, enabled: bool) -> RepositoryView:
        repo, _ = await self._registry.find(name)
        changed = await self._registry.enable(repo, enabled)
        if enabled:
            await self._take_back(repo.id)
        # Also an actor without jobs: it may be awake, and remembers what it loaded.
        with suppress(MailboxClosed, *(() if enabled else (SetAsideError,))):
            (await self._open(repo.id)).tell(SetEnabled(enabled))
        running = len(self._store.tally.running_of(repo.id))
        waiting = self._store.tally.active_of(repo.id) - running
        return self._repository_view(changed, (waiting, running))

    async def _take_back(self, repo: str) -> None:
        """Let what was set aside of the repository be tried again."""
        if not self._store.read("poisons_of", repo):
            return
        event = Event("repository_taken_back", self._clock.now(), repo)
        await self._store.save([TakenBack(repo, event)]).wait()
        with suppress(MailboxClosed):
            self._supervisor.tell(TakeBack(repo))

    def _repository_view(
        self,
        repo: Repository,
        counts: tuple[int, int] = (0, 0),
        note: str | None = None,
    ) -> RepositoryView:
        waiting, running = counts
        return RepositoryView(
            id=repo.id,
            name=repo.name,
            path=repo.path,
            enabled=repo.enabled,
            waiting=waiting,
            running=running,
            added_at=timestamp(repo.added_at),
            note=note,
        )
