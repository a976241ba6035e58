"""What can be asked to change what waits and runs: holds, pauses, edits."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import msgspec
import trio

from forge_actors.actors import supervisor_messages
from forge_actors.actors.repository_messages import EditJob, PauseHere, Steer
from forge_actors.domain.errors import ForgeError, InvalidInput, NotFound, Refused
from forge_actors.domain.jobs import RESERVED, TERMINAL, JobSpec
from forge_actors.domain.scopes import (
    EVERYTHING,
    provider_of,
    repository_of,
    repository_scope,
)
from forge_actors.domain.steering import FOR_RUNNING, for_waiting
from forge_actors.runtime.control_jobs import JobControl
from forge_actors.runtime.fields import edit_of
from forge_actors.runtime.job_rows import pieces

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any

    from forge_actors.domain.jobs import JobView, State
    from forge_actors.domain.pauses import PauseView
    from forge_actors.domain.requests import JobEdit
    from forge_actors.domain.steering import Steering

_spec = msgspec.json.Decoder(JobSpec)


class SteeringControl(JobControl):
    """The part of the port `Control` that steers jobs, one or many."""

    async def hold(self, selector: str) -> JobView:
        return await self._steer(selector, "hold")

    async def unhold(self, selector: str) -> JobView:
        return await self._steer(selector, "unhold")

    async def pause_job(self, selector: str) -> JobView:
        return await self._steer(selector, "pause")

    async def resume_job(self, selector: str) -> JobView:
        return await self._steer(selector, "resume")

    async def _steer(self, selector: str, how: Steering) -> JobView:
        [view] = await self.steer_all([selector], how)
        return view

    async def steer_all(self, selectors: Sequence[str], how: Steering) -> list[JobView]:
        ids = self._endings.ids(selectors)
        problems: dict[str, str] = {}

        async def steer(jobs: tuple[str, ...], repo: str) -> None:
            refused: dict[str, str] = await self._ask(
                repo, lambda reply: Steer(jobs, how, reply)
            )
            problems.update(refused)

        places = self._places(ids)
        for job_id, (_, state) in places.items():
            if state in TERMINAL:
                raise _too_late(job_id, state, how)
            if state in RESERVED and how in FOR_RUNNING:
                raise Refused(for_waiting(job_id, how))
        await self._each_repository(places, steer)
        if problems:
            # Those that ended, or began, while this was on its way.
            first = next(iter(problems.values()))
            rest = len(ids) - len(problems)
            raise Refused(f"{first}; {rest} others are done" if rest else first)
        return await self._named(ids)

    async def cancel_all(
        self, selectors: Sequence[str], *, grace: float | None = None
    ) -> list[JobView]:
        ids = self._endings.ids(selectors)
        active = {
            job_id: place
            for job_id, place in self._places(ids).items()
            if place[1] not in TERMINAL
        }
        await self._each_repository(
            active, lambda jobs, repo: self._cancel(jobs, repo, grace)
        )
        return await self._named(ids)

    def _places(self, ids: Sequence[str]) -> dict[str, tuple[str, State]]:
        """The repository and the state of each of these jobs."""
        rows = self._store.read("job_places", json.dumps(ids))
        places = {row[0]: (row[1], row[2]) for row in rows}
        return {job_id: places[job_id] for job_id in ids}

    async def _each_repository(
        self,
        places: Mapping[str, tuple[str, State]],
        act: Callable[[tuple[str, ...], str], Awaitable[None]],
    ) -> None:
        """Do it to the jobs of each repository, to some at a time.

        Raises:
            ForgeError: one repository refused; it was done to those of the others.
        """
        problems: list[ForgeError] = []

        async def one(jobs: tuple[str, ...], repo: str) -> None:
            # An error that leaves a nursery would be a group, which no asker knows.
            try:
                await act(jobs, repo)
            except ForgeError as error:
                problems.append(error)

        for piece in pieces(list(places)):
            by_repo: dict[str, list[str]] = {}
            for job_id in piece:
                by_repo.setdefault(places[job_id][0], []).append(job_id)
            async with trio.open_nursery() as nursery:
                for repo, jobs in by_repo.items():
                    nursery.start_soon(one, tuple(jobs), repo)
        if problems:
            raise problems[0]

    async def job_mark(self, selector: str) -> str:
        return self._mark(self._store.match(selector))

    def _mark(self, job: str) -> str:
        # Those included that are not durable yet: whoever owns the job knows of them.
        rows = self._store.read_pending("view_job", job)
        return hashlib.blake2b(repr(rows).encode(), digest_size=12).hexdigest()

    async def edit(
        self, selector: str, edit: JobEdit, *, mark: str | None = None
    ) -> JobView:
        row = self._not_ended(selector, "edit")
        checkout = await self._checkout_of(row)
        checked = edit_of(edit, row[2], checkout)
        unchanged = None if mark is None else lambda: self._mark(row[0]) == mark
        await self._ask(
            row[25], lambda reply: EditJob(row[0], checked, reply, unchanged)
        )
        return await self.job(row[0])

    async def _checkout_of(self, row: tuple[Any, ...]) -> str:
        """The work tree that a job runs in, which its claims are relative to."""
        repo = self._registry.get(row[25])
        assert repo is not None, "a repository with active jobs is not removed"
        try:
            found, checkout = await self._registry.find(_spec.decode(row[5]).cwd)
        except ForgeError:
            return repo.path  # it runs in a folder outside of any repository of ours
        return checkout.root if checkout and found.id == repo.id else repo.path

    def _not_ended(self, selector: str, verb: str) -> tuple[Any, ...]:
        row = self._row(self._store.match(selector))
        if row[1] in TERMINAL:
            raise _too_late(row[0], row[1], verb)
        return row

    async def pause(self, scope: str, *, jobs: bool = False) -> list[PauseView]:
        return await self._set_pause(scope, on=True, jobs=jobs)

    async def resume(self, scope: str, *, jobs: bool = False) -> list[PauseView]:
        return await self._set_pause(scope, on=False, jobs=jobs)

    async def _set_pause(self, scope: str, *, on: bool, jobs: bool) -> list[PauseView]:
        name = repository_of(scope)
        if name is not None:
            repo = await self._repository_to_pause(name)
            await self._ask(repo, lambda reply: PauseHere(on, jobs, reply))
        else:
            self._check_scope(scope)
            await self._supervisor.ask(
                lambda reply: supervisor_messages.SetPause(scope, on, jobs, reply)
            )
        return self._pause_views()

    async def _repository_to_pause(self, name: str) -> str:
        try:
            return (await self._registry.find(name))[0].id
        except NotFound as error:
            names = tuple(repo.name for repo in self._registry.all())
            problem = str(error).removeprefix("repo: ")
            raise InvalidInput("repo", problem, allowed=names) from None

    def _check_scope(self, scope: str) -> None:
        provider = provider_of(scope)
        if scope == EVERYTHING:
            return
        if provider is None:
            kinds = (EVERYTHING, repository_scope("NAME"), "provider:NAME")
            raise InvalidInput("scope", f"{scope!r} is no scope", allowed=kinds)
        # One that the settings dropped meanwhile can still be let go.
        paused = any(pause.scope == scope for pause in self._pauses())
        if provider not in self._settings().providers and not paused:
            raise InvalidInput(
                "provider",
                f"{provider!r} is no known provider",
                allowed=tuple(sorted(self._settings().providers)),
            )


def _too_late(job_id: str, state: State, verb: str) -> Refused:
    return Refused(f"job {job_id} has ended ({state}): too late to {verb} it")
