"""Candidates: jobs that are admitted when they begin, by whoever they are of."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.admissions import NotAdmitted
from forge_actors.domain.requests import CandidateRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.admissions import Admissions, Admitted
    from forge_actors.domain.jobs import JobSpec
    from forge_actors.domain.launch import LaunchOrder
    from forge_actors.domain.requests import JobRequest


def as_candidate(spec: JobSpec, request: JobRequest) -> JobSpec:
    """What a job needs that a program of ours asks for, if it is one to be admitted."""
    if not isinstance(request, CandidateRequest):
        return spec
    # It ends by itself alone.
    budgets = structs.replace(spec.budgets, execution=None, idle=None)
    return structs.replace(spec, admission=request.admission, budgets=budgets)


class AdmissionDesk:
    """Finds who admits a candidate; implements `domain.admissions.Admissions`.

    A candidate of an earlier service may be asked about before the one it is of has
    begun again: it waits until all have.
    """

    def __init__(self) -> None:
        self._serving: dict[str, Admissions] = {}
        #: Of those that are being asked about, by their work.
        self._asked: dict[str, set[trio.CancelScope]] = {}
        self._complete = trio.Event()

    @contextmanager
    def serving(self, work: str, admissions: Admissions) -> Iterator[None]:
        """Have candidates of this work admitted by these, as long as the block lasts.

        What they are being asked about when it ends is not admitted.
        """
        assert work not in self._serving, f"{work} has one already"
        self._serving[work] = admissions
        self._asked[work] = set()
        try:
            yield
        finally:
            del self._serving[work]
            for asked in self._asked.pop(work):
                asked.cancel()

    def complete(self) -> None:
        """Whatever goes on from an earlier service has begun again."""
        self._complete.set()

    async def admit(self, order: LaunchOrder) -> Admitted | NotAdmitted:
        wanted = order.admission
        assert wanted is not None, "only candidates are asked about"
        if wanted.work not in self._serving:
            await self._complete.wait()
        work = wanted.work
        if work in self._serving:
            with trio.CancelScope() as scope, _member(self._asked[work], scope):
                return await self._serving[work].admit(order)
        return NotAdmitted(f"{work}, which it is of, does not run any more")


@contextmanager
def _member(of: set[trio.CancelScope], scope: trio.CancelScope) -> Iterator[None]:
    of.add(scope)
    try:
        yield
    finally:
        of.discard(scope)
