"""Callers: the job that a request comes from, if it comes from one.

Clients of ours that run within a job of the home say so in a header. It only takes
rights away, so nothing is gained by making it up.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from forge_actors.domain.effects import OF_JOB
from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.requests import JobRequest
    from forge_actors.edges.gateway.messages import Request

HEADER = "forge-job"
_JOB = re.compile(r"[0-9a-z]{1,64}")


def caller(request: Request) -> str | None:
    """The job that asks.

    Raises:
        InvalidInput: the header names none.
    """
    told = request.headers.get(HEADER)
    job = job_in(told)
    if told is not None and job is None:
        raise InvalidInput(HEADER, "is no id of a job")
    return job


def job_in(told: str | None) -> str | None:
    """The job that the header names; None if it names none."""
    return told if told is not None and _JOB.fullmatch(told) else None


def named(request: Request) -> str | None:
    """The same in words."""
    job = caller(request)
    return None if job is None else f"job {job}"


def origin_of(request: Request, origin: str) -> str:
    """The same origin, or the job that asks: it passes for nobody else."""
    job = caller(request)
    return origin if job is None else f"{OF_JOB}{job}"


def mark_callers(request: Request, jobs: Iterable[JobRequest]) -> None:
    """Say of jobs which job submits them, where they do not say so themselves.

    Raises:
        InvalidInput: one says that it is another job's.
    """
    asks = caller(request)
    if asks is not None:
        for job in jobs:
            if job.parent is None:
                job.origin = origin_of(request, job.origin)
            elif job.parent.job != asks:
                raise InvalidInput("parent", f"is not the job that asks, {asks}")
