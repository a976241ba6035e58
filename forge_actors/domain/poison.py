"""Poison: what made an actor fail again and again, left alone until somebody looks.

Its jobs keep the state and the claims they have; everything else goes on.
"""

from __future__ import annotations

from msgspec import Struct

from forge_actors.domain.redaction import bounded, redact
from forge_actors.domain.waiting import Waiting

#: Characters of the error that are kept.
MAX_ERROR = 500


class Poison(Struct, frozen=True):
    """One job that was set aside, or all of a repository if `job` is empty."""

    repo: str
    error: str
    since: float
    job: str = ""


def cause(error: BaseException) -> str:
    """The first error that is no group, in a few words and without secrets."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = " ".join(str(error).split())
    return bounded(redact(f"{type(error).__name__}: {text}"), MAX_ERROR)


def only(
    error: BaseException,
    kind: type[BaseException] | tuple[type[BaseException], ...],
) -> bool:
    """Whether it is one of these, or a group of nothing else."""
    if isinstance(error, BaseExceptionGroup):
        return all(only(each, kind) for each in error.exceptions)
    return isinstance(error, kind)


def why_aside(poison: Poison, repo: str) -> Waiting:
    """Why such a job stays as it is; `repo` is the name of its repository."""
    what = "it" if poison.job else "its repository"
    detail = (
        f"{what} was set aside, as the actor of the repository failed over and over"
        f" ({poison.error}); forge-actors repo enable {repo} tries again"
    )
    return Waiting("policy", poison.since, detail)
