"""Begins the work on issues of an EPIC: one at a time, each step under its lock.

What is written comes in an order that any crash leaves readable: whose the issue is,
then the claim, then the process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import trio

from forge_actors.actors.epic_run import Live
from forge_actors.domain.epic import telling
from forge_actors.domain.epic.claims import opened
from forge_actors.domain.epic.errors import Busy, StateError
from forge_actors.domain.epic.graph import IssueText, SnapshotRefused
from forge_actors.domain.epic.namespace import classify
from forge_actors.domain.epic.plan_file import issue_url
from forge_actors.domain.epic.records import (
    Admission,
    Binding,
    Closed,
    RunKey,
    WorkerDiagnostics,
    assignment,
    detail,
)
from forge_actors.domain.epic.workers import (
    NO_LOG,
    NO_WORKER,
    NotStarted,
    WorkerOrder,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.actors.epic_run import Run
    from forge_actors.domain.epic.graph import Reread
    from forge_actors.domain.epic.namespace import Classification, Namespace
    from forge_actors.domain.epic.ports import RunLock
    from forge_actors.domain.epic.records import Claim
    from forge_actors.domain.epic.workers import Worker

#: Seconds for reading one issue again before its work begins.
REREAD_SECONDS = 30.0

#: `stale` ends the round: the graph is read anew before anything else begins.
Outcome: TypeAlias = Literal["admitted", "skipped", "stale"]


class Admissions:
    """`ended` is told of each worker that has ended, with its status."""

    def __init__(self, run: Run, ended: Callable[[int, int | None], None]) -> None:
        self._run = run
        self._ended = ended

    async def step(self) -> None:
        """Begin issues that are ready, in their order, while there are slots."""
        while await self._round():
            pass

    async def _round(self) -> bool:
        """Whether others may begin in place of some that were skipped: what was skipped
        is not ready any more."""
        run, progress, slots = self._run, self._run.progress, self._run.context.slots
        for issue, why in slots.lost():
            run.hold(issue, "spawn-failed", why)
        ready, skipped = progress.ready(), False
        slots.want(ready[: progress.free])
        for issue in list(slots.granted()):
            if progress.free <= 0 or not run.ending.open:
                slots.refuse(issue, "nothing more begins")
                continue
            if issue not in ready:
                slots.refuse(issue, "it is not ready any more")
                continue
            outcome = await self._admit(issue)
            if outcome != "admitted":
                slots.refuse(issue, f"it was {outcome}")
            if outcome == "stale":
                progress.stale()
                return False
            if outcome == "admitted":
                progress.admitted()
            skipped = skipped or outcome == "skipped"
        return skipped

    async def _admit(self, issue: int) -> Outcome:
        run = self._run
        try:
            lock = run.context.locks.take_run(issue)
        except Busy:
            run.progress.observed.add(issue)
            run.say(f"#{issue}: skipped for now, somebody else has it")
            return "skipped"
        except StateError as error:
            run.hold(issue, "uncertain", f"it is left alone: {error}")
            return "skipped"
        try:
            return await self._under_lock(issue, lock)
        finally:
            lock.close()

    async def _under_lock(self, issue: int, lock: RunLock) -> Outcome:
        run = self._run
        namespace = run.context.namespaces.read(lock, issue)
        if namespace.is_of_another(run.epic.ref):
            run.hold(issue, "other-epic", "another EPIC works on it")
            return "skipped"
        found = classify(namespace, run.expected)
        if found.kind == "uncertain":
            run.hold(issue, "uncertain", f"it is left alone: {found.detail}")
            return "skipped"
        if found.kind == "settled":
            self._settle(issue, lock, found)
            return "skipped"
        now = await self._reread(issue)
        if now is None:
            return "stale"
        return await self._begin(issue, lock, namespace, found, *now)

    def _settle(self, issue: int, lock: RunLock, found: Classification) -> None:
        run = self._run
        told = f"the work on it has come to its end ({found.settlement})"
        run.hold(issue, "settled-namespace", told)
        if found.open_claim is None:
            return
        done = Closed("settled", found.settlement, None, detail(told), run.now)
        try:
            run.context.namespaces.close_claim(lock, found.open_claim, done)
            run.progress.earlier.pop(issue, None)
        except StateError as error:
            run.say(f"#{issue}: its claim stays open: {error}")

    async def _reread(self, issue: int) -> tuple[Reread, IssueText] | None:
        """The issue as it is now, if that is how the snapshot has it."""
        run = self._run
        snapshot, graph = run.progress.snapshot, run.context.graph
        assert snapshot is not None

        async def read() -> tuple[Reread, IssueText]:
            reread = await graph.reread(snapshot, issue)
            return reread, reread.text

        try:
            found = await self._unless_stopped(read)
        except SnapshotRefused as error:
            run.say(f"#{issue} could not be read again: {error}")
            return None
        if found is not None and not found[0].unchanged:
            run.say(telling.stale(issue, found[0].differences))
            return None
        return found

    async def _unless_stopped(
        self, read: Callable[[], Awaitable[tuple[Reread, IssueText]]]
    ) -> tuple[Reread, IssueText] | None:
        """What is read; None if nothing is to begin any more.

        Raises:
            SnapshotRefused: it cannot be read, or takes too long.
        """
        run = self._run
        found: list[tuple[Reread, IssueText] | SnapshotRefused] = []

        async def go() -> None:
            try:
                found.append(await read())
            except SnapshotRefused as error:
                found.append(error)
            nursery.cancel_scope.cancel()

        with trio.move_on_after(REREAD_SECONDS) as limit:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(go)
                while not run.is_told_to_stop:
                    await run.context.bell.wait()
                nursery.cancel_scope.cancel()
        # It may have been rung for the loop.
        run.context.bell.ring()
        if limit.cancelled_caught:
            told = f"within {REREAD_SECONDS:.0f} s"
            raise SnapshotRefused("unavailable", f"nothing was answered {told}")
        if not found:
            return None
        if isinstance(found[0], SnapshotRefused):
            raise found[0]
        return found[0]

    async def _begin(
        self,
        issue: int,
        lock: RunLock,
        namespace: Namespace,
        found: Classification,
        reread: Reread,
        text: IssueText,
    ) -> Outcome:
        run = self._run
        try:
            claim = self._write(issue, lock, namespace, found, reread, text)
        except StateError as error:
            run.hold(issue, "uncertain", f"it is left alone: {error}")
            return "skipped"
        run.progress.earlier.pop(issue, None)
        with trio.CancelScope(shield=True):  # the claim has a process, or is closed
            await self._start(issue, claim, lock)
        return "admitted"

    def _write(
        self,
        issue: int,
        lock: RunLock,
        namespace: Namespace,
        found: Classification,
        reread: Reread,
        text: IssueText,
    ) -> Claim:
        run, records = self._run, self._run.context.namespaces
        snapshot, place = run.progress.snapshot, run.repository.place
        assert snapshot is not None
        key = RunKey(run.repository.id, issue)
        if namespace.binding is None:
            binding = Binding(
                run_key=key,
                issue_id=reread.node.id,
                owner=place.owner,
                name=place.name,
                epic=run.epic.ref,
                worktree=run.context.worktree(issue),
                created_at=run.now,
            )
            records.bind(lock, binding)
            namespace = records.read(lock, issue)
        url = issue_url(place, issue)
        told = assignment(key, reread.node.id, url, text.title, text.body)
        records.assign(lock, told)
        claim = opened(
            namespace,
            found,
            run.expected,
            claim_id=f"c-{run.context.token()}",
            issue_id=reread.node.id,
            epic=run.epic.ref,
            invocation_id=run.invocation,
            admission=Admission(
                snapshot.digest, reread.node_digest, snapshot.observed_at
            ),
            now=run.now,
        )
        records.open_claim(lock, claim, found.open_claim)
        return claim

    # -- the process -----------------------------------------------------------------

    async def _start(self, issue: int, claim: Claim, lock: RunLock) -> None:
        run = self._run
        order = WorkerOrder(run.repository, claim, run.controller, lock.hand_off())
        try:
            worker = await run.context.workers.start(order)
        except NotStarted as error:
            self._not_started(issue, claim, lock, error)
            return
        run.progress.live[issue] = Live(issue, claim, worker)
        run.nursery.start_soon(self._follow, issue, worker)
        try:
            noted = WorkerDiagnostics(
                worker.pid, worker.start_time, run.now, worker.log
            )
            run.context.namespaces.note_worker(lock, claim, noted)
        except StateError as error:
            run.say(f"#{issue}: its process could not be noted down: {error}")
        run.say(telling.started(issue, claim, worker.pid, worker.log))
        begun = {"issue": issue, "how": claim.kind, "generation": claim.generation}
        run.tell("epic_issue_started", **begun)

    async def _follow(self, issue: int, worker: Worker) -> None:
        self._ended(issue, await worker.wait())

    def _not_started(
        self, issue: int, claim: Claim, lock: RunLock, error: NotStarted
    ) -> None:
        """Close its claim, unless a process is there all the same."""
        run = self._run
        fresh = lock
        if not error.no_process:
            lock.close()
            try:
                fresh = run.context.locks.take_run(issue)
            except Busy:
                run.progress.held[issue] = "owned"
                run.say(f"#{issue}: {error}, and yet something has its lock")
                return
            except StateError as problem:
                run.hold(issue, "uncertain", f"{error}, and {problem}")
                return
        prefix = NO_LOG if error.no_process else NO_WORKER
        told = detail(f"{prefix}{error}")
        try:
            done = Closed("abandoned", None, None, told, run.now)
            run.context.namespaces.close_claim(fresh, claim, done)
            run.hold(issue, "spawn-failed", told)
        except StateError as problem:
            run.hold(issue, "uncertain", f"{told}; its claim stays open: {problem}")
        finally:
            fresh.close()
