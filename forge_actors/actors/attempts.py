"""Attempts: the workers of one repository's jobs, from dispatch to recorded end."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    import trio

    from forge_actors.domain.jobs import Job
    from forge_actors.domain.launch import Ending, LaunchOrder
    from forge_actors.domain.ports import RunningAttempt
    from forge_actors.domain.recovery import StopReason


class Worker(Protocol):
    """The part of a worker that its repository uses."""

    def stop(self, grace: float | None = None, ending: Ending = "stop") -> None: ...

    def detach(self) -> None: ...

    def suspend(self, suspended: bool) -> None: ...

    def withdraw(self) -> None: ...

    def launch(self, order: LaunchOrder) -> None: ...

    def attend(self, begin: Callable[[], object]) -> None: ...

    def need_task(self) -> None: ...

    async def run(self, order: LaunchOrder) -> None: ...

    def adopt(self, running: RunningAttempt, *, suspended: bool) -> None: ...

    async def watch(self, job: str, attempt: int, fence: int) -> None: ...

    def abandon(self, order: LaunchOrder) -> None: ...

    def release(self) -> None: ...


class Attempts:
    """Who runs what, and how far it is. Only its repository's task holds one."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._workers: dict[tuple[str, int], Worker] = {}
        #: Dispatched, but the dispatch is not durable yet.
        self._unstarted: dict[str, tuple[Worker, LaunchOrder]] = {}
        self._stopping: dict[str, StopReason] = {}
        #: Workers whose end is recorded by the next save; then their tokens are free.
        self._done: list[Worker] = []
        self._closed = False

    def add(self, worker: Worker, order: LaunchOrder) -> None:
        """One that was dispatched; it is to be started when that is durable."""
        self._workers[order.job, order.attempt] = worker
        self._unstarted[order.job] = (worker, order)

    def adopt(
        self, worker: Worker, running: RunningAttempt, job: Job, *, suspended: bool
    ) -> None:
        """One that runs already."""
        assert job.fence is not None, "what was dispatched has a fence"
        self._workers[job.id, job.attempt] = worker
        worker.adopt(running, suspended=suspended)
        self._nursery.start_soon(worker.watch, job.id, job.attempt, job.fence)

    def has(self, job: str, attempt: int) -> bool:
        return (job, attempt) in self._workers

    def start(self, job: str) -> None:
        # The commit may come after the actor has failed, when it takes no more tasks.
        if not self._closed:
            worker, order = self._unstarted.pop(job)
            worker.launch(order)
            worker.attend(partial(self._nursery.start_soon, worker.run, order))

    def stop(
        self, job: str, attempt: int, reason: StopReason, grace: float | None
    ) -> None:
        # A person's cancel stands, even if the service stops before the job has ended,
        # and also if it began to stop before somebody cancelled the job.
        if reason == "cancelled" or job not in self._stopping:
            self._stopping[job] = reason
        ending: Ending = "cancel" if reason == "cancelled" else "stop"
        self._workers[job, attempt].stop(grace, ending)

    def is_stopped(self, job: str) -> bool:
        """Whether its attempt is being ended."""
        return job in self._stopping

    def suspend(self, jobs: Collection[str]) -> None:
        """Let the processes of these jobs stand still, and those of all others run."""
        for (job, _), worker in self._workers.items():
            worker.suspend(job in jobs)

    def withdraw(self, job: str, attempt: int) -> None:
        """Let it begin no more, if it was dispatched ahead."""
        worker = self._workers.get((job, attempt))
        if worker is not None:
            worker.withdraw()

    def withdraw_all(self) -> None:
        for worker in self._workers.values():
            worker.withdraw()

    def why_stopped(self, job: str) -> StopReason | None:
        """Why its attempt is or was stopped; None if it was not."""
        return self._stopping.get(job)

    def ended(self, job: str, attempt: int) -> None:
        self._stopping.pop(job, None)
        worker = self._workers.pop((job, attempt), None)
        if worker is not None:
            self._done.append(worker)

    def release(self) -> None:
        """The ends are recorded: their tokens may go to others."""
        for worker in self._done:
            worker.release()
        self._done.clear()

    def detach(self) -> None:
        """Let go of what runs; nothing more is heard of it."""
        for worker in self._workers.values():
            worker.detach()
        self._nursery.cancel_scope.cancel()

    @property
    def waits(self) -> bool:
        """Some are to be started once their dispatch is durable."""
        return bool(self._unstarted) and not self._closed

    def close(self) -> None:
        """Start nothing more; what runs is in the hands of its tasks."""
        self._closed = True
        for worker in self._workers.values():
            worker.need_task()

    def abandon(self) -> None:
        """Those that were not started never run."""
        for worker, order in self._unstarted.values():
            worker.abandon(order)
