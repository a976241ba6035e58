"""Looks: what the runtime says of itself, against what the world knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.actors import repository_messages, supervisor_messages
from forge_actors.domain.capacity import WORKERS
from forge_actors.domain.jobs import RESERVED, WAITING

if TYPE_CHECKING:
    from forge_actors.actors.supervisor_messages import Survey
    from forge_actors.domain.place import Waits
    from forge_actors.testing.simulation.service import Service
    from forge_actors.testing.simulation.world import World

#: Seconds after which what was on its way has arrived.
ON_ITS_WAY = 0.01


class Looks:
    """Asks one service, as `why` and `status` do."""

    def __init__(self, world: World, service: Service) -> None:
        self._world = world
        self._service = service

    async def look(self) -> None:
        """Every job that waits has a reason, and every token in use its job."""
        await self._look_at_tokens()
        for job, reason in (await self.reasons()).items():
            if not reason:
                self._world.fail("every wait has a reason", f"{job} has none")

    async def reasons(self) -> dict[str, str]:
        """Why each job that waits does."""
        found: dict[str, str] = {}
        for repo in self._world.repositories.values():
            waiting = [
                job.id
                for job in self._world.rows.jobs.values()
                if job.repo == repo and job.state in WAITING
            ]
            if waiting:
                found |= await self._explain(repo, tuple(waiting))
        return found

    async def _look_at_tokens(self) -> None:
        """Twice: a grant on its way to its repository has no job yet."""
        first = await self._survey()
        await trio.sleep(ON_ITS_WAY)
        second = await self._survey()
        if self._service.epoch != self._world.epoch:
            return  # it has no say any more
        for kind, use in second.tokens.items():
            before = first.tokens.get(kind, use)
            if min(before.used - len(before.jobs), use.used - len(use.jobs)) > 0:
                self._world.fail("tokens are counted", f"{kind}: {use} without jobs")
        counted = set(second.tokens[WORKERS].jobs) | set(first.tokens[WORKERS].jobs)
        for case in self._world.books.open_cases:
            # Tokens come back with the save of an end, which may not be durable yet.
            [(state,)] = self._service.store.read_pending("job_state", case.job)
            holds = case.reserved and state in RESERVED and not case.ahead
            if holds and case.job not in counted:
                what = f"{case.job} is {case.state} and holds none"
                self._world.fail("tokens are counted", what)

    async def _survey(self) -> Survey:
        return await self._service.mailbox.ask(supervisor_messages.Count)

    async def _explain(self, repo: str, jobs: tuple[str, ...]) -> dict[str, str]:
        answers: dict[str, Waits] = await self._service.ask(
            repo, lambda reply: repository_messages.Explain(jobs, reply)
        )
        found: dict[str, str] = {}
        for job, waits in answers.items():
            waiting = waits.waiting
            if waits.state not in WAITING:
                continue
            if waiting is not None and waits.offer is not None:
                asked = ((waits.offer, waits.ahead, waiting.since),)
                [waiting] = await self._service.place(asked)
            found[job] = "" if waiting is None else waiting.detail
        return found
