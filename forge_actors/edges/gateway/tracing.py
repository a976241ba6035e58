"""The trace that a request is a part of, which its jobs are then a part of too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.tracing import HEADER, VARIABLE, parse_trace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.requests import JobRequest
    from forge_actors.edges.gateway.messages import Request


def carry_on(request: Request, jobs: Iterable[JobRequest]) -> None:
    """Put jobs into the trace of the request, where they do not name one themselves.

    A header that is none is passed over, as the standard asks for.
    """
    trace = parse_trace(request.headers.get(HEADER))
    if trace is not None:
        for job in jobs:
            job.env = {VARIABLE: str(trace), **job.env}
