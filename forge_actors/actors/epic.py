"""The scheduler of one EPIC: one worker for each issue that is ready, up to a limit.

It owns what is known of the issues, and nobody else decides about them. A pass goes
through the same steps in the same order: who has ended, who wants it to end, what may
begin. It sleeps until something happens: a worker ends, a signal, another request to
stop, the graph has been read, or the next known moment has come.

It writes down who works on what before it starts anybody, and holds the lock of an
issue while it does; a worker has both locks for as long as it lives. So wherever the
scheduler is killed, the next one finds out what became of each issue.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors.epic_admission import Admissions
from forge_actors.actors.epic_context import Context as Context
from forge_actors.actors.epic_context import End as End
from forge_actors.actors.epic_finalizing import Finalizing
from forge_actors.actors.epic_graph import Reading
from forge_actors.actors.epic_run import Run
from forge_actors.domain.epic import telling
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.graph import SnapshotRefused
from forge_actors.domain.epic.progress import Progress
from forge_actors.domain.epic.records import (
    Invocation,
    RepositoryRef,
    Scheduler,
)
from forge_actors.domain.epic.stopping import TICK, Ending
from forge_actors.domain.timestamps import timestamp

if TYPE_CHECKING:
    from forge_actors.domain.epic.graph import EpicNode, RepositoryNode

#: Seconds between two tries to close a claim whose lock somebody has, at first and at
#: most: the kernel tells nobody when a lock is free.
RETRY, MAX_RETRY = TICK, 2.0


async def run(context: Context) -> End:
    """Work through an EPIC until nothing is left that may begin.

    Raises:
        LockHeld: somebody else has the repository, or a worker of an earlier run lives.
        UnsupportedFilesystem: locks are not kept where it is.
        StateError: the first record could not be written.
    """
    controller = context.locks.take_controller()
    try:
        descriptor = controller.share()
        begun = await _begin(context, descriptor)
        if isinstance(begun, End):
            return begun
        with context.signals(begun.signalled), context.watch(begun.epic.ref, context.bell.ring):
            return await _Loop(begun).run()
    finally:
        controller.close()


async def _begin(context: Context, controller: int) -> Run | End:
    """Find out what it is about; refuse it with nothing written, or have it recorded."""
    try:
        repository = await context.graph.repository()
        epic = await context.graph.epic()
    except SnapshotRefused as error:
        context.say(telling.refused(error))
        return End(None, wait=error.wait)
    context.before_start(epic.ref)
    try:
        earlier = context.namespaces.read_scheduler(epic.ref)
    except StateError as error:
        context.say(f"{error}; --force moves it aside")
        return End(None)
    if earlier is not None and earlier.repository.id != repository.id:
        context.say(
            f"an earlier run was of the repository with id {earlier.repository.id},"
            f" and this one has id {repository.id}"
        )
        return End(None)
    run = Run(context, controller, repository, epic)
    run.record = _record(run, earlier)
    context.namespaces.write_scheduler(run.record)
    for name in context.namespaces.clear_stop(epic.ref):
        context.say(f"an old request to stop was removed: {name}")
    invocation = run.record.invocation
    limit = context.config.max_parallel
    context.say(telling.began(epic, repository, invocation, limit))
    return run


def _record(run: Run, earlier: Scheduler | None) -> Scheduler:
    now = timestamp(run.context.clock.wall())
    place = run.repository.place
    return Scheduler(
        repository=RepositoryRef(run.repository.id, place.owner, place.name),
        epic=run.epic.ref,
        invocation=Invocation(f"i-{run.context.token()}", now),
        config=run.context.config,
        admission=run.ending.admission,
        last_snapshot=None,
        created_at=now if earlier is None else earlier.created_at,
        updated_at=now,
    )


class _Loop:
    """The passes of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._context = run.context
        self._admissions = Admissions(run)
        self._finalizing = Finalizing(run)
        self._reading = Reading(run)

    async def run(self) -> End:
        run = self._run
        if not run.reconcile_all():
            run.degrade("epic-not-admissible")
            return run.end(self._reading.wait)
        run.look_at_standalone()
        async with trio.open_nursery() as run.nursery:
            end = await self._passes()
            run.nursery.cancel_scope.cancel()
        return end

    async def _passes(self) -> End:
        run, progress = self._run, self._run.progress
        while True:
            self._finalizing.step()
            if run.obey():
                return run.end(self._reading.wait)
            if run.ending.open and progress.free > 0:
                await self._admit()
            else:
                self._reading.stop()
            if not progress.busy and not self._anything_left():
                return run.end(self._reading.wait)
            self._context.passed()
            await self._context.bell.wait(self._next_moment())

    async def _admit(self) -> None:
        """Read the graph if it is time, and begin what may begin."""
        run = self._run
        if run.progress.wants_snapshot(trio.current_time()):
            self._reading.start()
        if self._reading.under_way or not self._reading.take():
            return
        ...
