"""The part of the client that makes jobs of jobs that have ended."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from forge_actors.domain.requests import Continued, Retried, convert

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.client.sync import Parameters


class FollowingCalls(ABC):
    """Retries, and follow-ups in the session of an agent."""

    @abstractmethod
    async def _call(
        self, method: str, *path: str, body: object = None, query: Parameters = ()
    ) -> Any: ...

    async def retry(
        self,
        *selectors: str,
        origin: str = "cli",
        resume: bool = False,
        authorise: Sequence[str] = (),
    ) -> list[Retried]:
        """Make new jobs of some that have ended: all of them or none.

        With `resume` each goes on in the session of its agent. With `authorise` a
        person allows these effects.
        """
        body = {
            "jobs": selectors,
            "origin": origin,
            "resume": resume,
            "authorise": list(authorise),
        }
        answer = await self._call("POST", "retry", body=body)
        return convert(answer["jobs"], list[Retried])

    async def continue_job(
        self, selector: str, prompt: str, *, origin: str = "cli"
    ) -> Continued:
        """Ask the agent of a job that has ended for more, as a new job in the same
        session and worktree."""
        body = {"prompt": prompt, "origin": origin}
        answer = await self._call("POST", "jobs", selector, "continue", body=body)
        return convert(answer, Continued)
