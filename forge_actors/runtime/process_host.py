"""The process host: a session goes on as a job of ours, with the program of its agent.

Whether a job was made is in the store, so this host always knows what an occurrence has
begun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.domain.controller_hosts import HostAnswer
from forge_actors.domain.errors import (
    ForgeError,
    InvalidInput,
    NotFound,
)
from forge_actors.edges.sqlite.rows import spec_from
from forge_actors.runtime.again import Given, NoSession

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.controller_hosts import Continuation
    from forge_actors.domain.jobs import JobSpec
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.control_following import FollowingControl

PROCESS = "process"


class ProcessHost:
    """The port `ControllerHost`; its binding is the agent whose session it is."""

    name = PROCESS
    resumes = True

    def __init__(
        self, store: SqliteStore, control: Callable[[], FollowingControl]
    ) -> None:
        self._store = store
        self._control = control

    def check(self, binding: dict[str, Any], job: str | None) -> dict[str, Any]:
        """See the port."""
        if job is None:
            raise InvalidInput("job", "is missing: whose session is to go on?")
        agent = self._spec(job).agent
        if agent is None:
            raise InvalidInput("job", f"job {job} has no agent, so it has no session")
        if strange := sorted(set(binding) - {"agent"}):
            raise InvalidInput(f"binding.{strange[0]}", f"is nothing of {PROCESS}")
        if binding.get("agent", agent.name) != agent.name:
            raise InvalidInput(
                "binding.agent", f"the session of job {job} is one of {agent.name}"
            )
        return {"agent": agent.name}

    async def resume(self, continuation: Continuation) -> HostAnswer:
        """See the port."""
        job, wake = continuation.job, continuation.wake
        assert job is not None, "it was checked"
        try:
            spec = self._spec(job)
            budget = None if spec.agent is None else spec.agent.budget
            limits = spec.budgets
            given = Given(wake, None, {}, limits.queue, limits.execution, budget)
            made = await self._control().go_on(
                job, continuation.prompt, continuation.origin, given
            )
        except ForgeError as error:
            # Whatever it was: what is not in the store has not begun.
            return await self.found(wake) or _refused(error)
        return HostAnswer("accepted", dispatch=made.id, job=made.id)

    async def found(self, wake: str) -> HostAnswer | None:
        """See the port."""
        job = self._store.job_of_request(wake)
        if job is None:
            return None
        return HostAnswer("accepted", dispatch=job, job=job)

    def _spec(self, job: str) -> JobSpec:
        """
        Raises:
            NotFound: there is no such job.
        """
        rows = self._store.read_pending("job_spec", job)
        if not rows:
            raise NotFound(f"there is no job {job}")
        return spec_from(rows[0])


def _refused(error: ForgeError) -> HostAnswer:
    for_good = isinstance(error, NoSession | InvalidInput | NotFound)
    if for_good and isinstance(error, NoSession):
        return HostAnswer("wait_for_user", str(error))
    return HostAnswer("rejected" if for_good else "wait", str(error))
