"""Answers: what a job that asked something goes on with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain import effects
from forge_actors.domain.jobs import Answer

if TYPE_CHECKING:
    from forge_actors.domain.changes import JobAnswered, JobApproved
    from forge_actors.domain.jobs import AgentSpec, JobSpec

#: The answer of an approval.
GO_AHEAD = "Yes, go on."
#: Why a job is queued again, and the error of one that was denied without a reason.
ANSWERED, APPROVED = "answered", "approved"
DENIED = "a person said no"
#: Before the answer, where the session is gone in which it was asked for.
ASKED_BACK = "You have been asked this before, and asked back. This is the answer:"


def answered(spec: JobSpec, change: JobAnswered) -> JobSpec:
    """The spec of a job from its answer on."""
    assert spec.agent is not None, "only agents ask"
    answer = Answer(change.job, change.answer, change.attempt)
    return structs.replace(spec, agent=structs.replace(spec.agent, answer=answer))


def approved(spec: JobSpec, change: JobApproved) -> JobSpec:
    """The spec of a job from its approval on."""
    authority = effects.approved(spec.authority, change.approval)
    return structs.replace(spec, authority=authority)


def answer_to(agent: AgentSpec, job: str, *, since: int = 0) -> str | None:
    """The digest of the last answer that this very job had, if one of the attempts
    after `since` had asked for it."""
    answer = agent.answer
    if answer is None or answer.job != job or answer.attempt < since:
        return None
    return answer.prompt
