"""What can be said to a job that asks something, or that asks for approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.actors.repository_messages import AnswerJob, ApproveJob
from forge_actors.domain.answers import ANSWERED, APPROVED, DENIED, GO_AHEAD
from forge_actors.domain.effects import allowed, held_back
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.jobs import MAX_MESSAGE, TERMINAL
from forge_actors.domain.redaction import redact
from forge_actors.domain.steering import asks_nothing
from forge_actors.runtime.authorities import allow, effects_of
from forge_actors.runtime.control_jobs import JobControl
from forge_actors.runtime.prompts import PromptFolder

if TYPE_CHECKING:
    from forge_actors.domain.jobs import JobView


class AnswerControl(JobControl):
    """The part of the port `Control` that answers questions and allows effects."""

    async def answer(self, selector: str, text: str) -> JobView:
        return await self._answer(selector, text, ANSWERED)

    async def approve(
        self, selector: str, *, how: str = "program", caller: str | None = None
    ) -> JobView:
        job, repo = self._asking(selector)
        effects = held_back(self._store.spec(job).authority, job)
        if not effects:
            return await self._answer(job, GO_AHEAD, APPROVED)
        _refuse_job(caller, job)
        approval = allow(effects, how, self._clock.now())(job)
        await self._ask(repo, lambda reply: ApproveJob(job, approval, reply))
        return await self.job(job)

    async def deny(
        self, selector: str, reason: str | None = None, *, caller: str | None = None
    ) -> JobView:
        why = DENIED if reason is None else redact(reason.strip())
        if not why or len(why) > MAX_MESSAGE:
            raise InvalidInput("reason", f"has to have 1 to {MAX_MESSAGE} characters")
        job, repo = self._asking(selector)
        if held_back(self._store.spec(job).authority, job):
            _refuse_job(caller, job)
        await self._ask(repo, lambda reply: AnswerJob(job, None, why, reply))
        return await self.job(job)

    async def check_effect(self, job: str, effect: str) -> None:
        [wanted] = effects_of([effect], "effect")
        job_id = self._store.match(job)
        may = allowed(self._store.spec(job_id).authority, job_id)
        if may is not None and wanted not in may:
            raise Refused(
                f"job {job_id} was begun by no person, and nobody has allowed it to"
                f" {wanted}; a person can: forge-actors retry {job_id} --authorise"
                f" {wanted}"
            )

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


def _refuse_job(caller: str | None, job: str) -> None:
    """Refuse what only a person may do.

    Raises:
        Refused: a job asks for it.
    """
    if caller is not None:
        raise Refused(
            f"{caller} cannot decide what job {job} may do to the outside: only a"
            " person can, outside of any job"
        )
