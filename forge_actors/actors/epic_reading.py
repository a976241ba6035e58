"""Reads the graph of an EPIC beside the loop, and takes it in when it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.epic import telling
from forge_actors.domain.epic.claims import by_state
from forge_actors.domain.epic.errors import Busy, StateError
from forge_actors.domain.epic.graph import SnapshotRefused
from forge_actors.domain.epic.namespace import classify
from forge_actors.domain.epic.records import SnapshotSummary
from forge_actors.domain.epic.verdicts import counts

if TYPE_CHECKING:
    from forge_actors.actors.epic_run import Run
    from forge_actors.domain.epic.graph import Snapshot
    from forge_actors.domain.epic.records import Claim


class Reading:
    """One reading at a time, and none while nothing may begin."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._scope: trio.CancelScope | None = None
        self._read: Snapshot | SnapshotRefused | None = None
        self._told: str | None = None
        #: Issues of which was said that their earlier claim cannot be closed.
        self._told_open: set[int] = set()

    @property
    def under_way(self) -> bool:
        return self._scope is not None

    def step(self) -> bool:
        """Begin a reading if it is time, or take in what has been read; whether there
        is a snapshot to go by."""
        run = self._run
        if self._read is not None:
            read, self._read = self._read, None
            if isinstance(read, SnapshotRefused):
                run.wait = read.wait
                run.say(telling.refused(read, run.context.clock.wall()))
                run.degrade("snapshot-refused")
            else:
                self._accept(read)
        wanted = run.ending.open and run.progress.wants_snapshot(trio.current_time())
        if wanted and self._scope is None:
            self._scope = trio.CancelScope()
            run.nursery.start_soon(self._go, self._scope)
        return run.ending.open and self._scope is None

    def stop(self) -> None:
        """Nothing may begin any more: what is being read is not needed."""
        self._read = None
        if self._scope is not None:
            self._scope.cancel()

    async def _go(self, scope: trio.CancelScope) -> None:
        try:
            with scope:
                try:
                    self._read = await self._run.context.graph.snapshot()
                except SnapshotRefused as error:
                    self._read = error
        finally:
            self._scope = None
            self._run.context.bell.ring()

    # -- a whole one -----------------------------------------------------------------

    def _accept(self, snapshot: Snapshot) -> None:
        run, progress = self._run, self._run.progress
        before = progress.snapshot
        # It says who the issues are before it counts for anything else.
        progress.snapshot = snapshot
        if not self._look_at_observed():
            progress.snapshot = before
            run.degrade("epic-not-admissible")
            return
        progress.taken(snapshot, trio.current_time())
        run.repository = snapshot.repository
        self._close_unready()
        found = counts(progress.verdicts())
        summary = SnapshotSummary(
            digest=snapshot.digest,
            observed_at=snapshot.observed_at,
            children=len(snapshot.children),
            **found,
        )
        run.save(last_snapshot=summary)
        if self._told != (told := telling.summary(summary)):
            self._told = told
            run.say(told)
            run.tell("epic_snapshot", children=summary.children, **found)

    def _look_at_observed(self) -> bool:
        """Look again at issues that others had, and for what is wrong with all of them;
        whether anything may be admitted."""
        progress = self._run.progress
        others = progress.observed - progress.live.keys() - progress.ended.keys()
        progress.observed.clear()
        return self._run.reconcile(others)

    def _close_unready(self) -> None:
        """Close claims of earlier runs whose issue is not to be gone on with."""
        run, progress = self._run, self._run.progress
        verdicts = progress.graph_verdicts()
        for issue, claim in sorted(progress.earlier.items()):
            verdict = verdicts.get(issue)
            if verdict is not None and verdict.kind == "ready":
                continue
            why = "no child of the EPIC" if verdict is None else verdict.reason
            if verdict is None:
                run.hold(issue, "orphaned")
            self._close(issue, claim, why)

    def _close(self, issue: int, claim: Claim, why: str) -> None:
        run, progress = self._run, self._run.progress
        try:
            lock = run.context.locks.take_run(issue)
        except Busy:
            progress.observed.add(issue)
            return
        except StateError as error:
            self._stays_open(issue, error)
            return
        try:
            # Who it is may be known only since the graph was read.
            found = classify(run.context.namespaces.read(lock, issue), run.expected)
            text = f"found by {run.invocation}: {why}"
            done = by_state(found, exit_status=None, told=text, now=run.now)
            if done is None:
                run.hold(issue, "uncertain")
                raise StateError(found.detail)
            run.context.namespaces.close_claim(lock, claim, done)
        except StateError as error:
            self._stays_open(issue, error)
            return
        finally:
            lock.close()
        del progress.earlier[issue]
        run.say(f"#{issue}: an earlier claim of it is closed: {why}")

    def _stays_open(self, issue: int, error: StateError) -> None:
        """Say so, and not again at each snapshot."""
        if issue not in self._told_open:
            self._told_open.add(issue)
            self._run.say(f"#{issue}: its earlier claim stays open: {error}")
