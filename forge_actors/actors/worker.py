"""The worker actor: owns one attempt of one job, from launch to exit event.

It launches when the dispatch is durable, or adopts what an earlier worker launched. Its
task tells the repository `WorkerStarted`, if the end is not known by then, and
`WorkerExited` once the whole process tree is gone. With that the grant passes to the
repository, which gives it back when it has recorded the exit. Cancelling it is Kill:
the tree is ended under a shield and the exit still told. One that was detached only
lets go: what runs goes on, its tokens stay taken, and nobody is told anything.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import trio
from msgspec import structs

from forge_actors.domain.admissions import NOT_ADMITTED, Admitted
from forge_actors.domain.errors import LauncherDown, MailboxClosed
from forge_actors.domain.launch import Receipt, Secrets, WorkerExited, WorkerStarted

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors.isolating import Isolating
    from forge_actors.actors.tokens import Grant
    from forge_actors.domain.launch import Ending, LaunchOrder
    from forge_actors.domain.ports import Clock, Launcher, RunningAttempt

#: Longest grace of a worker that is killed, not stopped: nobody waits any more.
KILL_GRACE = 10.0
#: Seconds after the grace in which a launcher must have ended a tree for good.
KILL_MARGIN = 30.0


class Repository(Protocol):
    """Where a worker's notices go."""

    def tell(self, message: WorkerStarted | WorkerExited) -> None: ...


class Worker:
    """One attempt: `launch` begins it and `run` is its task, or `adopt` and `watch`.

    The rest are notices.
    """

    def __init__(
        self,
        grant: Grant,
        repository: Repository,
        launcher: Launcher,
        clock: Clock,
        unclaimed: Callable[[Receipt], None],
        isolating: Isolating | None = None,
    ) -> None:
        self._grant = grant
        self._repository = repository
        self._launcher = launcher
        self._clock = clock
        #: Takes the receipt if the repository has ended meanwhile.
        self._unclaimed = unclaimed
        self._isolating = isolating
        #: While what the job needs is made.
        self._making: trio.CancelScope | None = None
        #: What it begins as, if it had to be admitted.
        self._admitted: Admitted | None = None
        self._running: RunningAttempt | None = None
        self._stopped = False
        self._withdrawn = False
        self._suspended = False
        self._detached = False
        #: Its repository has its exit, and the grant with that.
        self._told = False
        #: Begins its task, while it has none.
        self._begin: Callable[[], object] | None = None
        #: Why the launcher started nothing.
        self._refused = "it was stopped before it started"

    def stop(self, grace: float | None = None, ending: Ending = "stop") -> None:
        """End the attempt: its stop signal, the grace (or its own), then kill."""
        self._stopped = True
        if self._running is not None:
            self._running.stop(grace=grace, ending=ending)
        elif self._making is not None:
            self._making.cancel()

    def withdraw(self) -> None:
        """Let it begin no more, if it waits for the end of another."""
        self._withdrawn = self._grant.ahead
        if self._withdrawn and self._running is not None:
            self._running.stop(ending="withdrawn")

    def detach(self) -> None:
        """Let go of what runs when the task is cancelled, and do not end it."""
        self._detached = True
        if self._told:
            # Its owner did not live to record the exit: the next one does.
            self._grant.let_go()

    def suspend(self, suspended: bool) -> None:
        """Let the whole tree stand still, or go on. Before the start, it begins so."""
        if suspended == self._suspended:
            return
        self._suspended = suspended
        if self._running is not None:
            (self._running.pause if suspended else self._running.resume)()

    def abandon(self, order: LaunchOrder) -> None:
        """Its repository failed before the launch: it will never run."""
        why = "its repository's actor failed before it started"
        self._unclaimed(self._never_ran(order, "stop", why))
        # Not before that is recorded, as it counts as dispatched until then.
        self._grant.let_go()

    def release(self) -> None:
        """Its exit is recorded: give the tokens back."""
        self._grant.give_back()

    def launch(self, order: LaunchOrder) -> None:
        """Give the order to the launcher, unless it was stopped first; then `run`.

        Apart from `run`, so that the order leaves in this turn of the loop and not
        after the first step of a new task. One for which something is to be made first,
        such as a worktree, leaves in `run`.
        """
        admitted = self._admitted
        descriptors = None if admitted is None else admitted.descriptors
        if self._stopped or order.problem is not None or needs_more(order):
            if descriptors is not None:
                descriptors.close()
            return
        try:
            self._running = self._launcher.launch(order, descriptors)
        except LauncherDown as error:
            self._refused = str(error)
        else:
            self._grant.launch()
            if self._suspended:
                self._running.pause()
            if self._withdrawn:
                self._running.stop(ending="withdrawn")

    def attend(self, begin: Callable[[], object]) -> None:
        """Let `begin` start `run` as its task, once it is of use; after `launch`.

        Most attempts that end soon are over before the launcher tells that they have
        begun. To make a task for each, that would only hear of the end, costs as much
        as all else a worker does; so such an end is told at once, without a task.
        """
        self._begin = begin
        running = self._running
        if running is None or not running.once_settled(self._settled):
            self.need_task()

    def need_task(self) -> None:
        """Have it now: somebody may cancel it, or it runs for longer."""
        begin, self._begin = self._begin, None
        if begin is not None:
            begin()

    def _settled(self) -> None:
        assert self._running is not None, "that is what has settled"
        receipt = self._running.receipt
        if receipt is None:
            self.need_task()
        elif self._begin is not None:
            began = receipt.identity is not None
            if began and self._grant.once_filled(self._settled):
                return  # of one that has no tokens yet nothing is told
            self._begin = None
            with self._grant:
                self._tell_exit(receipt)

    @trio.lowlevel.enable_ki_protection
    async def run(self, order: LaunchOrder) -> None:
        with self._grant:
            if needs_more(order):
                self._grant.prepared = True
                if order.room is not None:
                    # Others would begin in its place meanwhile.
                    why = "something has to be made for it first"
                    self._tell_exit(self._never_ran(order, "withdrawn", why))
                    return
                order = await self._isolated(order)
                self.launch(order)
            self._tell_exit(await self._attempt(order))

    async def _isolated(self, order: LaunchOrder) -> LaunchOrder:
        """The order with all that it needs, unless it cannot start anyway."""
        isolating = self._isolating
        if isolating is None or self._stopped or order.problem is not None:
            return order
        try:
            with trio.CancelScope() as self._making:
                order = await isolating.prepare(order)
                return await self._admit(order, isolating)
        except trio.Cancelled:
            # What was begun is left: the attempt is begun anew by its next owner.
            if self._detached:
                self._grant.let_go()
            else:
                self._unclaimed(self._never_ran(order, "stop", self._refused))
            raise
        finally:
            self._making = None
        await isolating.give_up(order, self._refused)
        return order

    async def _admit(self, order: LaunchOrder, isolating: Isolating) -> LaunchOrder:
        """The order as it is admitted, if it has to be; or why it is not."""
        if order.admission is None or order.problem is not None:
            return order
        found = await isolating.admit(order)
        # Cancelled from here on, the scope has no moment to notice.
        if isinstance(found, Admitted):
            self._admitted = found
            env = {**order.env, **found.env}
            secrets = Secrets({**order.secrets, **found.secrets})
            given = {"argv": found.argv, "env": env, "secrets": secrets}
            return structs.replace(order, admission=None, **given)
        await isolating.give_up(order, found.reason)
        told = {"problem": found.reason, "problem_code": NOT_ADMITTED}
        return structs.replace(order, admission=None, **told)

    def adopt(self, running: RunningAttempt, *, suspended: bool | None) -> None:
        """Own what runs already, and let it stand still or go on; then `watch`.

        Without `suspended` it stays as it is.
        """
        self._running = running
        self._grant.launch()
        if suspended is not None:
            self._suspended = suspended
            (running.pause if suspended else running.resume)()

    @trio.lowlevel.enable_ki_protection
    async def watch(self, job: str, attempt: int, fence: int | None) -> None:
        """The task of a worker that has adopted this attempt; `fence`, if known, is
        that of its dispatch."""
        assert self._running is not None, "it has adopted one"
        with self._grant:
            receipt = await self._until_gone(self._running, job, attempt, KILL_GRACE)
            if fence is not None and receipt.fence != fence:
                # Of another dispatch, as a store that was restored has them: all that
                # it proves of this one is that nothing runs.
                receipt = structs.replace(receipt, ending="lost", fence=fence)
            self._tell_exit(receipt)

    def _tell_exit(self, receipt: Receipt) -> None:
        if self._admitted is not None:
            self._admitted.ended(receipt)
        if receipt.exit_code != 0 and self._isolating is not None:
            self._isolating.look_after(self._grant.repo, receipt)
        if receipt.started_at is not None:
            self._grant.ran = receipt.ended_at - receipt.started_at
        try:
            self._repository.tell(WorkerExited(receipt.job, receipt.attempt, receipt))
        except MailboxClosed:
            self._unclaimed(receipt)
        else:
            self._told = True
            self._grant.pass_on()

    async def _attempt(self, order: LaunchOrder) -> Receipt:
        running = self._running
        if running is None and order.problem is not None and not self._stopped:
            called_off = order.problem_code == NOT_ADMITTED
            return self._never_ran(
                order, "cancel" if called_off else "spawn", order.problem
            )
        if running is None:
            return self._never_ran(order, "stop", self._refused)
        grace = min(order.grace, KILL_GRACE)
        return await self._until_gone(running, order.job, order.attempt, grace)

    async def _until_gone(
        self, running: RunningAttempt, job: str, attempt: int, grace: float
    ) -> Receipt:
        try:
            identity = await running.started()
            if identity is not None and self._admitted is not None:
                self._admitted.began(identity)
            if identity is not None and self._grant.ahead:
                await self._have_tokens()
            # The receipt of one that has ended already says that it began.
            if identity is not None and running.receipt is None:
                started = WorkerStarted(job, attempt, identity)
                with suppress(MailboxClosed):
                    self._repository.tell(started)
            return await running.exited()
        except trio.Cancelled:
            if self._detached:
                self._grant.let_go()
                raise
            with trio.CancelScope(shield=True) as scope:
                scope.deadline = trio.current_time() + grace + KILL_MARGIN
                running.stop(grace=grace)
                receipt = await running.exited()
                if self._admitted is not None:
                    self._admitted.ended(receipt)
                self._unclaimed(receipt)
            raise

    async def _have_tokens(self) -> None:
        came = trio.Event()
        if self._grant.once_filled(came.set):
            await came.wait()

    def _never_ran(self, order: LaunchOrder, ending: Ending, why: str) -> Receipt:
        return Receipt(
            job=order.job,
            attempt=order.attempt,
            fence=order.fence,
            ending=ending,
            ended_at=self._clock.now(),
            error=why,
            code=None if ending == "stop" else order.problem_code,
            no_worktree=order.no_worktree,
        )


def needs_more(order: LaunchOrder) -> bool:
    """Whether something is to be made for it before it is launched."""
    if order.wanted is not None or order.admission is not None:
        return True
    return order.inputs is not None and not order.inputs.placed
