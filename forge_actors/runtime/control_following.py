"""What can be asked of jobs that have ended: to do them again, or to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.runtime.authorities import allow, effects_of
from forge_actors.runtime.control_worktrees import WorktreeControl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.requests import Continued, Retried
    from forge_actors.runtime.again import Given


class FollowingControl(WorktreeControl):
    """The part of the port `Control` that makes jobs of jobs."""

    async def retry(
        self,
        selectors: Sequence[str],
        *,
        origin: str = "cli",
        resume: bool = False,
        authorise: Sequence[str] = (),
        how: str = "program",
    ) -> list[Retried]:
        ids = self._endings.ids(selectors)
        if resume:
            for job_id in ids:
                await self._bring_back(job_id)
        effects = effects_of(authorise, "authorise")
        allowing = allow(effects, how, self._clock.now()) if effects else None
        return await self._admission.again.retry(
            ids, origin, resume=resume, allow=allowing
        )

    async def continue_job(
        self, selector: str, prompt: str, *, origin: str = "cli"
    ) -> Continued:
        return await self.go_on(self._store.match(selector), prompt, origin)

    async def go_on(
        self, job: str, prompt: str, origin: str, given: Given | None = None
    ) -> Continued:
        """The same for a whole id, for a workflow with what that gives.

        Raises:
            NoSession: there is none to go on with.
        """
        await self._bring_back(job)
        return await self._admission.again.follow(job, prompt, origin, given)

    async def _bring_back(self, job: str) -> None:
        """Make the worktree of a job again if it was removed, if somebody may go on
        with that job."""
        worktree = self._admission.again.worktree(job)
        if worktree is None or worktree.state != "removed":
            return
        try:
            await self.restore_worktree(worktree.id)
        except (NotFound, Refused) as error:
            raise Refused(
                f"job {job} cannot be gone on with, since its worktree was removed and"
                f" cannot be made again: {error}"
            ) from None
