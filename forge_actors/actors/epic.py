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

from forge_actors.actors.epic_admission import Admissions
from forge_actors.actors.epic_context import Context as Context
from forge_actors.actors.epic_finalizing import Finalizing
from forge_actors.actors.epic_reading import Reading
from forge_actors.actors.epic_run import Run
from forge_actors.domain.epic import telling
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.graph import SnapshotRefused
from forge_actors.domain.epic.records import Invocation, RepositoryRef, Scheduler
from forge_actors.domain.epic.stopping import TICK, End

if TYPE_CHECKING:
    pass


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
        with context.signals(begun.signalled):
            return await _Loop(begun).run()
    finally:
        controller.close()


async def _begin(context: Context, controller: int) -> Run | End:
    """Find out what it is; have it recorded, or refuse it with nothing written."""
    try:
        repository = await context.graph.repository()
        epic = await context.graph.epic()
    except SnapshotRefused as error:
        context.say(telling.refused(error, context.clock.wall()))
        return End(None, wait=error.wait)
    context.before_start(epic.ref)
    try:
        earlier = context.namespaces.read_scheduler(epic.number)
    except StateError as error:
        context.say(f"the record of the last run: {error}; --force moves it aside")
        return End(None)
    if earlier is not None and earlier.repository.id != repository.id:
        context.say(
            f"the last run was of the repository with the id {earlier.repository.id},"
            f" and this one has {repository.id}: is this the right checkout?"
        )
        return End(None)
    run = Run(context, controller, repository, epic)
    run.record = _record(run, earlier)
    context.namespaces.write_scheduler(run.record)
    try:
        if context.namespaces.remove_stop(epic.number):
            context.say("an old request to stop was removed")
    except StateError as error:
        context.say(f"an old request to stop cannot be removed: {error}")
    invocation, limit = run.record.invocation, context.config.max_parallel
    context.say(telling.began(epic, repository, invocation, limit))
    return run


def _record(run: Run, earlier: Scheduler | None) -> Scheduler:
    place = run.repository.place
    return Scheduler(
        repository=RepositoryRef(run.repository.id, place.owner, place.name),
        epic=run.epic.ref,
        invocation=Invocation(f"i-{run.context.token()}", run.now),
        config=run.context.config,
        admission=run.ending.admission,
        last_snapshot=None,
        created_at=run.now if earlier is None else earlier.created_at,
        updated_at=run.now,
    )


class _Loop:
    """The passes of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._finalizing = Finalizing(run)
        self._reading = Reading(run)
        self._admissions = Admissions(run, self._finalizing.ended)

    async def run(self) -> End:
        run = self._run
        if not run.reconcile():
            run.ending.degrade("epic-not-admissible")
            return run.end()
        run.look_at_standalone()
        async with trio.open_nursery() as run.nursery:
            watch, ring = run.context.watch, run.context.bell.ring
            await run.nursery.start(watch, run.epic.ref, ring)
            while not await self._pass():
                run.context.passed(run.view)
                await run.context.bell.wait(self._next_moment())
            run.nursery.cancel_scope.cancel()
        return run.end()

    async def _pass(self) -> bool:
        """Whether it is over."""
        run, progress = self._run, self._run.progress
        self._finalizing.step()
        if run.obey():
            return True
        if run.ending.open and progress.free > 0:
            if self._reading.step():
                await self._admissions.step()
        else:
            self._reading.stop()
            run.context.slots.want(())
        if progress.busy or self._reading.under_way:
            return False
        if run.is_told_to_stop:
            if not run.has_obeyed:
                run.context.bell.ring()  # it came while an issue began
            return run.has_obeyed
        if progress.anything_left():
            return False
        run.tell_held()
        return True

    def _next_moment(self) -> float:
        """When there is something to do although nothing happens."""
        run = self._run
        moments = [self._finalizing.next_moment, run.ending.deadline]
        if run.ending.pressing:
            moments.append(trio.current_time() + TICK)
        elif run.ending.open and not self._reading.under_way:
            moments.append(run.progress.next_snapshot)
        return min((each for each in moments if each is not None), default=math.inf)
