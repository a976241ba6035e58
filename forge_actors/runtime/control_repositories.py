"""What can be asked of the repositories."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors import controllers_messages
from forge_actors.actors.repository_messages import SetEnabled
from forge_actors.actors.schedules_messages import RepositoryGone
from forge_actors.actors.supervisor_messages import TakeBack
from forge_actors.domain.changes import TakenBack
from forge_actors.domain.errors import MailboxClosed, SetAsideError
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import STATES, WAITING
from forge_actors.domain.projections import (
    MAX_ATTENTION,
    Attention,
    LeaseView,
    StatusView,
    attention_in,
    status_view,
)
from forge_actors.domain.repositories import RepositoryDetails, RepositoryView
from forge_actors.domain.timestamps import timestamp
from forge_actors.edges.sqlite.rows import claims_from
from forge_actors.runtime.control_base import ControlBase
from forge_actors.runtime.job_rows import pieces
from forge_actors.runtime.views import shown_text

if TYPE_CHECKING:
    from forge_actors.domain.looking import Look
    from forge_actors.domain.repositories import Repository

#: Repositories that are read before others have their turn.
PIECE = 200


class RepositoryControl(ControlBase):
    """The part of the port `Control` that is about repositories."""

    async def add_repository(
        self, path: str, name: str | None = None
    ) -> RepositoryView:
        repo, note = await self._registry.add(path, name)
        self._looking.board.added(repo.id)
        return self._repository_view(repo, note=note)

    async def repositories(self) -> list[RepositoryView]:
        tally, rows = self._store.tally, self._store.read("looks")
        looks = {row[0]: row for row in rows}
        counts, fences = tally.waiting_and_running(), dict(self._store.read("fences"))
        views: list[RepositoryView] = []
        for repo in self._registry.all():
            if len(views) % PIECE == PIECE - 1:
                await trio.lowlevel.checkpoint()
            row = looks.get(repo.id)
            look = None if row is None else self._store.look_of(row)
            view = self._repository_view(repo, counts.get(repo.id, (0, 0)))
            views.append(
                structs.replace(
                    view,
                    status=self._status(look, fences.get(repo.id, 0)),
                    attention=tally.attention_of(repo.id),
                )
            )
        return views

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
        view = structs.replace(
            self._repository_view(repo, (waiting, len(running)), note),
            status=self._status(self._store.look(repo.id), fence),
            attention=attention_in(found),
        )
        return RepositoryDetails(
            **structs.asdict(view),
            common_dir=repo.common_dir,
            fence=fence,
            last_dispatch=timestamp(last) if last else None,
            counts=counts,
            running_jobs=running,
            leases=self._leases(running),
            attention_jobs=self._attention(repo.id) if view.attention else [],
            trust=await self.trusts.note(repo),
        )

    async def relocate_repository(self, name: str, path: str) -> RepositoryView:
        repo, note = await self._registry.relocate(name, path)
        self._looking.board.added(repo.id)
        running = len(self._store.tally.running_of(repo.id))
        waiting = self._store.tally.active_of(repo.id) - running
        return self._repository_view(repo, (waiting, running), note)

    def _status(self, look: Look | None, fence: int) -> StatusView:
        ahead, now = self._clock.ahead(), self._clock.now()
        return status_view(
            look,
            now,
            fence,
            lambda at: timestamp(at + ahead),
            lambda problem: shown_text(problem, self._roots),
        )

    def _leases(self, jobs: list[str]) -> list[LeaseView]:
        rows = self._store.read("leases_of", json.dumps(jobs)) if jobs else []
        return [
            LeaseView(job, fence, list(map(str, claims_from(claims))))
            for job, fence, claims in rows
        ]

    def _attention(self, repo: str) -> list[Attention]:
        rows = self._store.read("attention_of", repo, MAX_ATTENTION)
        return [Attention(job, state, timestamp(at)) for job, state, at in rows]

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

    def forget_repository(self, repo: str) -> None:
        """It was removed, and what was trusted of it: nothing begins jobs of it."""
        self.trusts.changed(repo, trusted=False)
        self.scheduling.tell(RepositoryGone(repo))
        self.controllers.tell(controllers_messages.RepositoryGone(repo))

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
