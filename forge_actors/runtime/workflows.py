"""The workflows of one runtime: an actor for each that has not ended, kept alive.

An actor that fails is started again from what was saved. One that fails over and over,
or cannot be read, is set aside, alone: its jobs go on, and `workflow show` says why.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import trio
from msgspec import structs

from forge_actors.actors import workflows
from forge_actors.actors.keeper import Keeper
from forge_actors.actors.workflows import Context
from forge_actors.domain.errors import MailboxClosed, Refused, StoreFailed, Unavailable
from forge_actors.domain.workflow_records import (
    UnreadableWorkflow,
    added,
    header_of,
    loaded,
    saved,
    step_saved,
    unreadable,
    workflow_event,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.actors.mailbox import Reply
    from forge_actors.actors.workflows_messages import Message
    from forge_actors.domain.changes import Change
    from forge_actors.domain.workflow_definitions import Definition
    from forge_actors.domain.workflow_steps import Workflow

log = logging.getLogger(__name__)

A = TypeVar("A")

#: Workflows that have not ended.
MAX_ACTIVE = 1000


class _Kept:
    """One workflow that has not ended."""

    def __init__(self, workflow: str, context: Context) -> None:
        self.keeper: Keeper[Message] = Keeper(
            f"workflow {workflow}",
            lambda *, task_status: workflows.run(
                context, workflow, task_status=task_status
            ),
            ends_at=(StoreFailed,),  # another runtime has the home, and this one ends
            gives_up_at=(UnreadableWorkflow,),
            answers_late=True,
        )
        #: Set when nothing is to be done about it any more.
        self.over = trio.Event()


class RunningWorkflows:
    """`run` is its task."""

    def __init__(self, context: Context, new_id: Callable[[], str]) -> None:
        #: An id that nothing else has, in order with those of jobs.
        self.new_id = new_id
        self._context = context
        self._kept: dict[str, _Kept] = {}
        self._nursery: trio.Nursery | None = None
        self._scope = trio.CancelScope()
        self._stopped = False
        #: Set once those that were saved have an actor.
        self._loaded = trio.Event()

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Keep every workflow moving until `stop`."""
        try:
            with self._scope:
                async with trio.open_nursery() as self._nursery:
                    for workflow in self._context.store.active_workflows():
                        self._start(workflow)
                    self._loaded.set()
                    await trio.sleep_forever()
        finally:
            self._stopped = True
            self._loaded.set()
            for kept in self._kept.values():
                kept.over.set()

    def stop(self) -> None:
        """Submit nothing more; jobs that run are followed by the next runtime."""
        self._scope.cancel()

    async def begin(
        self, workflow: Workflow, definition: Definition, request: str | None
    ) -> str:
        """Have a new one run; it is durable when this returns. Its id, or that of the
        one that the same request has begun.

        Raises:
            Refused: too many have not ended.
        """
        await self._loaded.wait()
        store = self._context.store
        while request is not None and (begun := store.workflow_of_request(request)):
            with suppress(StoreFailed):  # then it was not begun
                await self._save([])
                return begun
        self._check_room()
        now = self._context.clock.now()
        change = added(workflow, definition, request, now)
        await self._save([change], start=workflow.id)
        return workflow.id

    async def retry(self, workflow: str, steps: Sequence[str]) -> None:
        """Have one that has ended go on with what failed.

        Raises:
            Refused: it has not ended, too many others have not, or no step failed.
        """
        await self._loaded.wait()
        if workflow in self._kept:
            raise Refused(f"workflow {workflow} has not ended")
        self._check_room()
        row = self._context.store.workflow(workflow)
        assert row is not None, workflow
        header, definition, known = loaded(*row)
        again = []
        if header.state != "quarantined":
            again = self._context.plan(definition, known).retry(steps)
        header = structs.replace(
            header, state="running", why=None, ended=None, counts={}
        )
        now = self._context.clock.now()
        event = workflow_event("workflow_resumed", header, now, reason="tried again")
        changes = [step_saved(header, step, now) for step in again]
        await self._save([saved(header, event), *changes], start=workflow)

    async def ask(self, workflow: str, make: Callable[[Reply[A]], Message]) -> A | None:
        """What the actor of a workflow answers; None if it has none, as it has ended.

        Raises:
            Unavailable: the service ends.
        """
        await self._loaded.wait()
        while (kept := self._kept.get(workflow)) is not None:
            try:
                return await kept.keeper.ask(make)
            except MailboxClosed:
                await kept.over.wait()
                if self._stopped:
                    raise Unavailable(
                        "workflows are not moved any more: the service ends"
                    ) from None
        return None

    async def wait(self, workflow: str) -> None:
        """Return when it has ended, or is set aside.

        Raises:
            Unavailable: the service ends.
        """
        await self._loaded.wait()
        kept = self._kept.get(workflow)
        if kept is not None:
            await kept.over.wait()
            if self._stopped:
                raise Unavailable("the service ends")

    # -- the parts -------------------------------------------------------------------

    def _check_room(self) -> None:
        if len(self._kept) >= MAX_ACTIVE:
            raise Refused(f"{MAX_ACTIVE} workflows have not ended, which is the most")

    async def _save(
        self, changes: Sequence[Change], *, start: str | None = None
    ) -> None:
        """Once they are durable the workflow starts, also if nobody waits any more."""
        if self._nursery is None or self._stopped:
            raise Unavailable("workflows are not moved any more: the service ends")
        then = None if start is None else partial(self._start, start)
        await self._context.store.save(changes, then=then).wait()

    def _start(self, workflow: str) -> None:
        if self._nursery is None or self._stopped:
            return
        if workflow not in self._kept:
            self._kept[workflow] = _Kept(workflow, self._context)
            self._nursery.start_soon(self._keep, workflow, self._kept[workflow])

    @trio.lowlevel.enable_ki_protection
    async def _keep(self, workflow: str, kept: _Kept) -> None:
        try:
            await kept.keeper.run()
            if kept.keeper.given_up is not None:
                await self._set_aside(workflow, kept.keeper.given_up)
        finally:
            del self._kept[workflow]
            kept.over.set()

    async def _set_aside(self, workflow: str, problem: str) -> None:
        """Leave one alone, with its jobs as they are."""
        row = self._context.store.workflow(workflow)
        if row is None:
            return
        why, now = f"it is set aside: {problem}", self._context.clock.now()
        try:
            header = structs.replace(
                header_of(row[0][1]), state="quarantined", why=why, ended=self._wall
            )
            body = None
        except UnreadableWorkflow:
            # Nothing is written over what cannot be read.
            header, body = unreadable(workflow, why), row[0][1]
        event = workflow_event("workflow_set_aside", header, now, reason=why)
        with suppress(StoreFailed):  # another runtime has the home
            await self._context.store.save([saved(header, event, body)]).wait()

    @property
    def _wall(self) -> float:
        return self._context.clock.wall()
