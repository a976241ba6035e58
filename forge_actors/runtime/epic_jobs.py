"""The issues of an EPIC as jobs of a service.

An issue that is ready is queued as a candidate, like every other job. When it has its
tokens and claims, the scheduler of the EPIC decides whether its work begins, and its
process is given the locks. A candidate that is not wanted any more is cancelled.
"""

from __future__ import annotations

import logging
import os
import signal
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import trio

from forge_actors.domain.admissions import AdmissionWanted, Admitted, NotAdmitted
from forge_actors.domain.disk import DiskLow
from forge_actors.domain.epic.workers import NotStarted
from forge_actors.domain.errors import (
    ActorStopped,
    AdmissionBlocked,
    ForgeError,
    StoreFailed,
    Unavailable,
)
from forge_actors.domain.requests import CandidateRequest
from forge_actors.edges.node.descriptors import OpenDescriptors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from forge_actors.domain.epic.workers import WorkerOrder
    from forge_actors.domain.jobs import State
    from forge_actors.domain.launch import LaunchOrder, ProcessIdentity, Receipt
    from forge_actors.domain.requests import Accepted, JobRequest

log = logging.getLogger(__name__)

#: Seconds until the next try of a candidate that could not be queued for now.
TRY_AGAIN = 30.0
_FOR_NOW = (StoreFailed, Unavailable, ActorStopped, DiskLow, AdmissionBlocked)


#: Arguments, variables, and those that are keys.
Begun: TypeAlias = tuple[tuple[str, ...], dict[str, str], dict[str, str]]


class Ends(Protocol):
    """The part of the store that tells of ends."""

    def when_ended(self, job: str, notify: Callable[[State], None]) -> None: ...


class _Candidate:
    """The job of an issue, until its work has begun."""

    def __init__(self) -> None:
        self.job: str | None = None
        #: It is not wanted any more.
        self.withdrawn = False
        #: Set once the scheduler has answered.
        self.answered = trio.Event()
        self.answer: Admitted | NotAdmitted | None = None
        #: It has its tokens, and asks.
        self.asks = False
        #: Who works, once it is admitted.
        self.worker: JobWorker | None = None

    def reply(self, answer: Admitted | NotAdmitted) -> None:
        self.answer = answer
        self.answered.set()


class JobWorker:
    """The port `Worker`: the process of a job."""

    def __init__(self, job: str, interrupt: Callable[[], None]) -> None:
        self.job = job
        self.identity: ProcessIdentity | None = None
        self.receipt: Receipt | None = None
        #: It runs, or never will.
        self.settled = trio.Event()
        self._over = trio.Event()
        self._interrupt = interrupt

    @property
    def pid(self) -> int:
        assert self.identity is not None, "it runs"
        return self.identity.pid

    @property
    def start_time(self) -> int | None:
        return None if self.identity is None else self.identity.start_ticks

    @property
    def log(self) -> str:
        """See the port."""
        return f"job {self.job}"

    def began(self, identity: ProcessIdentity) -> None:
        self.identity = identity
        self.settled.set()

    def ended(self, receipt: Receipt) -> None:
        self.receipt = receipt
        self.never_began()

    def never_began(self) -> None:
        """Nobody tells of it any more."""
        self.settled.set()
        self._over.set()

    def interrupt(self) -> None:
        """See the port."""
        self._interrupt()

    async def wait(self) -> int | None:
        """See the port."""
        await self._over.wait()
        receipt = self.receipt
        if receipt is None:
            return None
        if receipt.signal is not None:
            return -signal.Signals[receipt.signal]
        return receipt.exit_code


class IssueJobs:
    """The ports `Slots`, `Workers` and `Admissions` of one run."""

    def __init__(
        self,
        work: str,
        nursery: trio.Nursery,
        store: Ends,
        submit: Callable[[Sequence[JobRequest]], Awaitable[list[Accepted]]],
        cancel: Callable[[str], Awaitable[object]],
        ring: Callable[[], None],
        request: Callable[[int], Mapping[str, Any]],
        command: Callable[[WorkerOrder], Begun],
    ) -> None:
        """`request` is what the job of an issue is, `command` what it begins as once it
        is admitted, and `ring` wakes the scheduler."""
        self._work = work
        self._nursery = nursery
        self._store = store
        self._submit = submit
        self._cancel = cancel
        self._ring = ring
        self._request = request
        self._command = command
        self._candidates: dict[int, _Candidate] = {}
        self._order: Sequence[int] = ()
        self._lost: list[tuple[int, str]] = []
        self._closed = trio.Event()
        #: The jobs that work on issues, or did.
        self.jobs: dict[int, str] = {}

    # -- slots -----------------------------------------------------------------------

    def want(self, issues: Sequence[int]) -> None:
        """See the port."""
        self._order = issues
        for issue in self._candidates.keys() - set(issues):
            self._withdraw(issue, "it is not to begin any more")
        new = {each: _Candidate() for each in issues if each not in self._candidates}
        if new:
            self._candidates |= new
            self._nursery.start_soon(self._queue, new)

    def granted(self) -> Sequence[int]:
        """See the port."""
        known = self._candidates
        return [each for each in self._order if each in known and known[each].asks]

    def refuse(self, issue: int, reason: str) -> None:
        """See the port."""
        self._withdraw(issue, reason)

    def lost(self) -> Sequence[tuple[int, str]]:
        """See the port."""
        lost, self._lost = tuple(self._lost), []
        return lost

    def close(self) -> None:
        """Have nobody wait any more. What works goes on."""
        self._closed.set()
        for issue in list(self._candidates):
            self._withdraw(issue, "the scheduler of the EPIC has ended")

    def _withdraw(self, issue: int, reason: str) -> None:
        candidate = self._candidates.pop(issue, None)
        if candidate is None:
            return
        candidate.withdrawn = True
        candidate.reply(NotAdmitted(reason))
        if candidate.job is not None and not candidate.asks:
            self._nursery.start_soon(self._cancel_job, candidate.job)

    async def _queue(self, new: Mapping[int, _Candidate]) -> None:
        """Together, so that the jobs are in the order of the issues."""
        requests = [
            CandidateRequest(
                **self._request(issue),
                work=self._work,
                admission=AdmissionWanted(self._work, issue),
            )
            for issue in new
        ]
        try:
            accepted = await self._submit(requests)
        except _FOR_NOW as error:
            log.info("issues of EPIC run %s are not queued: %s", self._work, error)
            with trio.move_on_after(TRY_AGAIN):
                await self._closed.wait()
            for issue, candidate in new.items():
                self._drop(issue, candidate)
            return
        except ForgeError as error:
            for issue, candidate in new.items():
                self._drop(issue, candidate, f"its job was refused: {error}")
            return
        for (issue, candidate), job in zip(new.items(), accepted, strict=True):
            candidate.job = job.id
            notify = partial(self._job_ended, issue, candidate)
            self._store.when_ended(job.id, notify)
            if candidate.withdrawn:
                await self._cancel_job(job.id)

    def _job_ended(self, issue: int, candidate: _Candidate, state: State) -> None:
        if candidate.answer is None:
            self._drop(issue, candidate, f"its job has not begun: it is {state}")

    def _drop(self, issue: int, candidate: _Candidate, why: str | None = None) -> None:
        """Know of no candidate any more; with a reason, there is to be no other."""
        if self._candidates.get(issue) is candidate:
            del self._candidates[issue]
            if why is not None:
                self._lost.append((issue, why))
            self._ring()

    async def _cancel_job(self, job: str) -> None:
        try:
            await self._cancel(job)
        except ForgeError as error:
            log.info("job %s of %s was not cancelled: %s", job, self._work, error)

    # -- admissions ------------------------------------------------------------------

    async def admit(self, order: LaunchOrder) -> Admitted | NotAdmitted:
        """See the port."""
        wanted = order.admission
        assert wanted is not None, "only candidates are asked about"
        candidate = self._candidates.get(wanted.issue)
        if candidate is None or candidate.job not in (None, order.job):
            return NotAdmitted("the scheduler of the EPIC does not wait for it")
        candidate.job, candidate.asks = order.job, True
        self._ring()
        try:
            await candidate.answered.wait()
        except trio.Cancelled:
            candidate.withdrawn = True
            self._drop(wanted.issue, candidate, "its job was cancelled")
            if isinstance(candidate.answer, Admitted):  # a moment too late
                self._take_back(candidate, candidate.answer)
            raise
        assert candidate.answer is not None, "it was answered"
        return candidate.answer

    def _take_back(self, candidate: _Candidate, admitted: Admitted) -> None:
        if admitted.descriptors is not None:
            admitted.descriptors.close()
        if candidate.worker is not None:
            candidate.worker.never_began()

    # -- workers ---------------------------------------------------------------------

    async def start(self, order: WorkerOrder) -> JobWorker:
        """See the port."""
        issue = order.claim.run_key.issue_number
        candidate = self._candidates.pop(issue, None)
        if candidate is None or candidate.withdrawn or candidate.job is None:
            raise NotStarted("its job was cancelled meanwhile")
        job = candidate.job
        try:
            command, variables, keys = self._command(order)
        except ForgeError as error:
            candidate.reply(NotAdmitted(str(error)))
            raise NotStarted(str(error)) from None
        worker = candidate.worker = JobWorker(job, partial(self._interrupt, job))
        self.jobs[issue] = job
        descriptors = OpenDescriptors([os.dup(order.controller), os.dup(order.run)])
        told = worker.began, worker.ended
        candidate.reply(Admitted(command, variables, descriptors, *told, keys))
        await worker.settled.wait()
        if worker.identity is None:
            why = None if worker.receipt is None else worker.receipt.error
            raise NotStarted(why or "its job ended before it had a process")
        return worker

    def _interrupt(self, job: str) -> None:
        self._nursery.start_soon(self._cancel_job, job)
