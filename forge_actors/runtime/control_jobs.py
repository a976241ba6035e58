"""What can be asked of the jobs: what they are, what they wait for, their end."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors import supervisor_messages
from forge_actors.actors.mailbox import ask_together
from forge_actors.actors.repository_messages import AskStopped, Explain
from forge_actors.domain.errors import MailboxClosed
from forge_actors.domain.holding import Holder, Holding, holding
from forge_actors.domain.jobs import RESERVED, TERMINAL, WAITING, JobView
from forge_actors.domain.place import Waits
from forge_actors.domain.poison import why_aside
from forge_actors.domain.requests import Accepted, Explanation, JobQuery, refuse_work
from forge_actors.domain.selection import check_selection
from forge_actors.runtime.control_base import ControlBase
from forge_actors.runtime.job_rows import list_rows, pieces, select_ids
from forge_actors.runtime.sentences import sentence
from forge_actors.runtime.views import (
    waiting_view,
    with_waiting,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from forge_actors.domain.jobs import State
    from forge_actors.domain.poison import Poison
    from forge_actors.domain.requests import JobRequest
    from forge_actors.domain.selection import JobFilter, Selection
    from forge_actors.domain.waiting import Waiting


class JobControl(ControlBase):
    """The part of the port `Control` that is about jobs."""

    async def submit(
        self, requests: Sequence[JobRequest], *, key: str | None = None
    ) -> list[Accepted]:
        refuse_work(requests)
        return await self._admission.submit(requests, key)

    async def jobs(self, query: JobQuery) -> list[JobView]:
        repos = await self._repo_ids(query)
        return await self._views(await list_rows(self._store, query, repos))

    async def jobs_named(self, selectors: Sequence[str]) -> list[JobView]:
        return await self._named(self._endings.ids(selectors))

    async def _named(self, ids: Sequence[str]) -> list[JobView]:
        """The jobs with these ids, in their order."""
        found: dict[str, JobView] = {}
        for piece in pieces(list(dict.fromkeys(ids))):
            rows = self._store.read("view_jobs", json.dumps(piece))
            found |= {view.id: view for view in await self._views(rows)}
            await trio.lowlevel.checkpoint()
        return [found[job_id] for job_id in ids]

    async def _views(self, rows: Sequence[tuple[Any, ...]]) -> list[JobView]:
        """Rows as readers see them, with what those that wait wait for."""
        by_repo: dict[str, list[str]] = {}
        for row in rows:
            if row[1] in WAITING:
                by_repo.setdefault(row[25], []).append(row[0])
        waits = await self._explain_all(by_repo)
        await self._add_places(waits)
        return [self._merged(self._view(row), waits.get(row[0])) for row in rows]

    async def select(self, selection: Selection) -> list[str]:
        check_selection(selection)
        ids = self._endings.ids(selection.jobs)
        repos = await self._repo_ids(selection)
        return await select_ids(self._store, selection, repos, ids)

    async def _repo_ids(self, wanted: JobFilter) -> list[str]:
        return [(await self._registry.find(name))[0].id for name in wanted.repo]

    async def _add_places(self, waits: dict[str, Waits]) -> None:
        """Where only the supervisor knows what jobs wait for, ask it once for all."""
        asked = {
            job: (entry.offer, None, entry.waiting.since)
            for job, entry in waits.items()
            if entry.offer is not None
            and entry.waiting is not None
            and entry.waiting.resource is None
        }
        if not asked:
            return
        answers: list[Waiting] = await self._supervisor.ask(
            lambda reply: supervisor_messages.Place(tuple(asked.values()), reply)
        )
        for job, waiting in zip(asked, answers, strict=True):
            state, before = waits[job].state, waits[job].waiting
            note = "" if before is None else before.note
            if note != waiting.note:
                waiting = structs.replace(waiting, note=note)
            waits[job] = Waits(state, waiting)

    async def job(self, selector: str) -> JobView:
        return (await self._look(selector))[0]

    async def why(self, selector: str) -> Explanation:
        job, waiting = await self._look(selector)
        suspended = self._suspended(self._row(job.id)) if job.paused else None
        # Since when it waits its actor says, and since when it is paused the store.
        now = self._clock.wall() if waiting is None else self._clock.now()
        survey = await self._supervisor.ask(supervisor_messages.Count)
        return Explanation(
            job=job.id,
            state=job.state,
            sentence=sentence(job, waiting, now, suspended, survey.silence),
            waiting=None if waiting is None else waiting_view(waiting),
        )

    async def check_fence(self, job: str, attempt: int, fence: int) -> Holding:
        stopping = False
        for row in self._store.read("view_job", job):
            if row[1] in RESERVED:
                stopping = await self._ask(
                    row[25], lambda reply: AskStopped(job, reply)
                )
        found = None
        # Read after the question: what was said of it meanwhile is known by now.
        for row in self._store.read("view_job", job):
            paused = self._suspended(row) is not None
            found = Holder(row[1], row[7], row[9], stopping, paused)
        return holding(job, attempt, fence, found)

    async def cancel(self, selector: str, *, grace: float | None = None) -> JobView:
        job_id = self._store.match(selector)
        row = self._row(job_id)
        if row[1] not in TERMINAL:
            await self._cancel((job_id,), row[25], grace)
        return await self.job(job_id)

    async def wait(self, selectors: Sequence[str]) -> list[JobView]:
        ids = self._endings.ids(selectors)
        await self._endings.wait(ids)
        return await self._named(ids)

    async def _look(self, selector: str) -> tuple[JobView, Waiting | None]:
        """A job as it is, with what it waits for, down to the tokens it lacks."""
        job_id = self._store.match(selector)
        row = self._row(job_id)
        job = self._view(row)
        if job.state in RESERVED:
            return job, self._why_aside(row[25], job_id, self._aside(row[25]))
        if job.state not in WAITING:
            return job, None
        waits = (await self._explain(row[25], [job_id])).get(job_id)
        if waits is None or waits.waiting is None:
            return self._merged(self._view(self._row(job_id)), waits), None
        waiting, offer = waits.waiting, waits.offer
        if offer is not None and waiting.resource is None:
            since, ahead, note = waiting.since, waits.ahead, waiting.note
            [waiting] = await self._supervisor.ask(
                lambda reply: supervisor_messages.Place(((offer, ahead, since),), reply)
            )
            waiting = structs.replace(waiting, note=note)
        return with_waiting(job, waits.state, waiting), waiting

    async def _explain_all(self, by_repo: dict[str, list[str]]) -> dict[str, Waits]:
        """The same of jobs of several repositories, whose actors are asked at once."""
        if not by_repo:
            return {}
        aside = {row[0] for row in self._store.read("poisons")}
        rest = [repo for repo in by_repo if repo in aside]
        whole = [repo for repo in by_repo if repo not in aside]
        asks = [
            (await self._actor(repo), partial(Explain, tuple(by_repo[repo])))
            for repo in whole
        ]
        waits: dict[str, Waits] = {}
        answers: list[dict[str, Waits] | Exception] = await ask_together(asks)
        for repo, answer in zip(whole, answers, strict=True):
            if isinstance(answer, MailboxClosed):
                rest.append(repo)  # it fell asleep
            elif isinstance(answer, Exception):
                raise answer
            else:
                waits |= answer
        for repo in rest:
            waits |= await self._explain(repo, by_repo[repo])
        return waits

    async def _explain(self, repo: str, ids: Sequence[str]) -> dict[str, Waits]:
        aside = self._aside(repo)
        asked = () if "" in aside else tuple(i for i in ids if i not in aside)
        waits: dict[str, Waits] = {}
        if asked:
            waits = await self._ask(repo, lambda reply: Explain(asked, reply))
        if aside:
            rows = self._store.read("states_of", json.dumps(ids))
            states: dict[str, State] = dict(rows)
            for job in ids:
                if (why := self._why_aside(repo, job, aside)) is not None:
                    waits[job] = Waits(states[job], why)
        return waits

    def _why_aside(
        self, repo: str, job: str, aside: dict[str, Poison]
    ) -> Waiting | None:
        poison = aside.get(job) or aside.get("")
        if poison is None:
            return None
        known = self._registry.get(repo)
        return why_aside(poison, known.name if known else repo)

    def _merged(self, job: JobView, waits: Waits | None) -> JobView:
        if waits is None:
            return job
        return with_waiting(job, waits.state, waits.waiting)
