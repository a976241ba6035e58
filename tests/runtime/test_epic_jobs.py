"""Issues of an EPIC as jobs: candidates that come, ask, are admitted or are not."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.domain.admissions import AdmissionWanted, Admitted, NotAdmitted
from forge_actors.domain.epic.workers import NotStarted
from forge_actors.domain.errors import Refused, Unavailable
from forge_actors.domain.launch import ProcessIdentity, Receipt
from forge_actors.runtime.epic_jobs import TRY_AGAIN, IssueJobs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from forge_actors.domain.requests import JobRequest

pytestmark = pytest.mark.mock_clock

IDENTITY = ProcessIdentity("boot", 4242, 7)


class Service:
    """What takes the jobs: each gets a number, and asks when a test says so."""

    def __init__(self) -> None:
        self.queued: list[JobRequest] = []
        self.cancelled: list[str] = []
        self.ends: dict[str, Callable[[Any], None]] = {}
        self.rung = 0
        self.failure: Exception | None = None
        self.issues: IssueJobs

    async def submit(self, requests: Sequence[JobRequest]) -> list[Any]:
        await trio.lowlevel.checkpoint()
        if self.failure is not None:
            raise self.failure
        first = len(self.queued) + 1
        self.queued += requests
        return [SimpleNamespace(id=f"job{first + n}") for n in range(len(requests))]

    async def cancel(self, job: str) -> None:
        self.cancelled.append(job)
        await trio.lowlevel.checkpoint()

    def when_ended(self, job: str, notify: Callable[[Any], None]) -> None:
        self.ends[job] = notify

    def ring(self) -> None:
        self.rung += 1

    async def ask(self, issue: int, job: str) -> Admitted | NotAdmitted:
        """Have a job of this issue be dispatched."""
        order: Any = SimpleNamespace(job=job, admission=AdmissionWanted("run", issue))
        return await self.issues.admit(order)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[IssueJobs]:
        async with trio.open_nursery() as nursery:
            self.issues = IssueJobs(
                *("run", nursery, self, self.submit, self.cancel, self.ring),
                request=lambda issue: {"repo": "app", "argv": [str(issue)]},
                command=lambda order: (("worker", str(order)), {"A": "b"}, {"K": "v"}),
            )
            yield self.issues
            self.issues.close()


def order_of(issue: int) -> Any:
    claim = SimpleNamespace(run_key=SimpleNamespace(issue_number=issue))
    read, write = os.pipe()
    return SimpleNamespace(claim=claim, controller=read, run=write)


def open_here() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def receipt(**more: Any) -> Receipt:
    return Receipt("job1", 1, 1, more.pop("ending", "exit"), 0.0, **more)


async def test_one_that_has_its_tokens_is_given_the_locks() -> None:
    service = Service()
    async with service.open() as issues, trio.open_nursery() as nursery:
        issues.want([1, 2])
        issues.want([1, 2])
        await trio.testing.wait_all_tasks_blocked()
        assert [request.argv for request in service.queued] == [["1"], ["2"]]
        assert {request.work for request in service.queued} == {"run"}
        assert issues.granted() == []
        answers: list[Any] = []

        async def dispatched() -> None:
            answers.append(await service.ask(1, "job1"))
            answers[0].began(IDENTITY)

        nursery.start_soon(dispatched)
        await trio.testing.wait_all_tasks_blocked()
        assert (issues.granted(), service.rung) == ([1], 1)
        order = order_of(1)
        worker = await issues.start(order)
        [admitted] = answers
        assert (admitted.argv[0], admitted.env, admitted.secrets) == (
            *("worker", {"A": "b"}, {"K": "v"}),
        )
        # They are copies: the scheduler closes its own.
        handed = admitted.descriptors.numbers
        assert set(handed).isdisjoint({order.controller, order.run})
        assert [os.fstat(each).st_ino for each in handed] == [
            os.fstat(each).st_ino for each in (order.controller, order.run)
        ]
        assert (worker.pid, worker.start_time, worker.log) == (4242, 7, "job job1")
        assert issues.jobs == {1: "job1"}
        worker.interrupt()
        await trio.testing.wait_all_tasks_blocked()
        assert service.cancelled == ["job1"]
        admitted.ended(receipt(signal="SIGKILL"))
        assert await worker.wait() == -9
        for each in (*handed, order.controller, order.run):
            os.close(each)
    # What was queued still is queued no more.
    assert service.cancelled == ["job1", "job2"]


async def test_one_that_is_not_wanted_any_more_is_cancelled() -> None:
    service = Service()
    async with service.open() as issues, trio.open_nursery() as nursery:
        issues.want([1, 2])
        await trio.testing.wait_all_tasks_blocked()
        answers: list[Any] = []

        async def dispatched() -> None:
            answers.append(await service.ask(2, "job2"))

        nursery.start_soon(dispatched)
        await trio.testing.wait_all_tasks_blocked()
        issues.want([])
        await trio.testing.wait_all_tasks_blocked()
        # The one that asks is answered, the other one is cancelled.
        assert service.cancelled == ["job1"]
        assert [type(answer) for answer in answers] == [NotAdmitted]
        # Wanted again, each is a new job.
        issues.want([1])
        await trio.testing.wait_all_tasks_blocked()
        assert len(service.queued) == 3
        assert issues.lost() == ()


async def test_jobs_of_an_earlier_scheduler_are_not_admitted() -> None:
    service = Service()
    async with service.open() as issues:
        assert isinstance(await service.ask(1, "job0"), NotAdmitted)
        issues.want([1])
        await trio.testing.wait_all_tasks_blocked()
        assert isinstance(await service.ask(1, "job0"), NotAdmitted)
        assert issues.granted() == []


async def test_a_person_who_cancels_it_has_it_left_alone() -> None:
    service = Service()
    async with service.open() as issues:
        issues.want([1, 2])
        await trio.testing.wait_all_tasks_blocked()
        service.ends["job1"]("cancelled")
        with trio.move_on_after(1.0):
            await service.ask(2, "job2")
        lost = issues.lost()
        assert [issue for issue, _ in lost] == [1, 2]
        assert issues.lost() == ()
        assert issues.granted() == []


async def test_cancelled_while_it_is_admitted_nothing_stays_open() -> None:
    service = Service()
    async with service.open() as issues, trio.open_nursery() as nursery:
        issues.want([1])
        await trio.testing.wait_all_tasks_blocked()
        scope = trio.CancelScope()

        async def dispatched() -> None:
            with scope:
                await service.ask(1, "job1")

        nursery.start_soon(dispatched)
        await trio.testing.wait_all_tasks_blocked()
        order = order_of(1)
        before = open_here()
        scope.cancel()  # it has not noticed yet
        with pytest.raises(NotStarted):
            await issues.start(order)
        assert open_here() == before
        os.close(order.controller)
        os.close(order.run)


async def test_what_cannot_be_queued_now_is_queued_later() -> None:
    service = Service()
    async with service.open() as issues:
        service.failure = Unavailable("the disk is full")
        issues.want([1])
        await trio.sleep(TRY_AGAIN + 1)
        assert (service.rung, issues.lost()) == (1, ())
        service.failure = Refused("its repository is disabled")
        issues.want([1])
        await trio.testing.wait_all_tasks_blocked()
        [(issue, why)] = issues.lost()
        assert (issue, "disabled" in why) == (1, True)


async def test_a_process_that_never_was_is_told_so() -> None:
    service = Service()
    async with service.open() as issues, trio.open_nursery() as nursery:
        issues.want([1])
        await trio.testing.wait_all_tasks_blocked()

        async def dispatched() -> None:
            answer = await service.ask(1, "job1")
            assert isinstance(answer, Admitted)
            assert answer.descriptors is not None
            answer.descriptors.close()
            answer.ended(structs.replace(receipt(ending="spawn"), error="no memory"))

        nursery.start_soon(dispatched)
        await trio.testing.wait_all_tasks_blocked()
        order = order_of(1)
        with pytest.raises(NotStarted, match="no memory"):
            await issues.start(order)
        os.close(order.controller)
        os.close(order.run)
