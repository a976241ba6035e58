"""What can be said to a job that asks something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.actors.repository_messages import AnswerJob
from forge_actors.domain.answers import ANSWERED, APPROVED, DENIED, GO_AHEAD
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.jobs import MAX_MESSAGE, TERMINAL
from forge_actors.domain.redaction import redact
from forge_actors.domain.steering import asks_nothing
from forge_actors.runtime.control_jobs import JobControl
from forge_actors.runtime.prompts import PromptFolder

if TYPE_CHECKING:
    from forge_actors.domain.jobs import JobView


class AnswerControl(JobControl):
    """The part of the port `Control` that answers questions of agents."""

    async def answer(self, selector: str, text: str) -> JobView:
        return await self._answer(selector, text, ANSWERED)

    async def approve(self, selector: str) -> JobView:
        return await self._answer(selector, GO_AHEAD, APPROVED)

    async def deny(self, selector: str, reason: str | None = None) -> JobView:
        why = DENIED if reason is None else redact(reason.strip())
        if not why or len(why) > MAX_MESSAGE:
            raise InvalidInput("reason", f"has to have 1 to {MAX_MESSAGE} characters")
        job, repo = self._asking(selector)
        await self._ask(repo, lambda reply: AnswerJob(job, None, why, reply))
        return await self.job(job)

    async def _answer(self, selector: str, text: str, reason: str) -> JobView:
        job, repo = self._asking(selector)
        digest = PromptFolder(self._home).keep(text, field="text")
        await self._ask(repo, lambda reply: AnswerJob(job, digest, reason, reply))
        return await self.job(job)

    def _asking(self, selector: str) -> tuple[str, str]:
        """A job that has not ended, and its repository; its actor knows the rest."""
        row = self._row(self._store.match(selector))
        if row[1] in TERMINAL:
            raise Refused(asks_nothing(row[0], row[1]))
        return row[0], row[25]
