"""What becomes of an issue of an EPIC once its worker has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.epic import telling
from forge_actors.domain.epic.claims import by_state
from forge_actors.domain.epic.errors import Busy, StateError
from forge_actors.domain.epic.namespace import classify
from forge_actors.domain.epic.stopping import TICK

if TYPE_CHECKING:
    from forge_actors.actors.epic_run import Live, Run
    from forge_actors.domain.epic.ports import RunLock
    from forge_actors.domain.epic.verdicts import Fact

#: Seconds until the next try to close a claim whose lock somebody has: the kernel tells
#: nobody when a lock is free. Doubled each time up to the second.
RETRY, MAX_RETRY = TICK, 2.0
#: Seconds after which people are told that somebody has it.
TELL_AFTER = 10.0


class _Waiting:
    """An issue whose worker has ended, and whose lock somebody has."""

    def __init__(self, now: float) -> None:
        self.since = now
        self.told = False
        self.pause = RETRY
        self.again_at = now


class Finalizing:
    """Workers tell it of their end through `ended`."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._exits: dict[int, int | None] = {}
        self._waiting: dict[int, _Waiting] = {}

    def ended(self, issue: int, status: int | None) -> None:
        self._exits[issue] = status
        self._run.context.bell.ring()

    @property
    def next_moment(self) -> float | None:
        """When the next try is due."""
        return min((each.again_at for each in self._waiting.values()), default=None)

    def step(self) -> None:
        """Free the slots of workers that have ended; close the claims that can be."""
        progress = self._run.progress
        for issue in sorted(self._exits):
            progress.ended[issue] = (progress.live.pop(issue), self._exits[issue])
        self._exits.clear()
        now = trio.current_time()
        for issue in sorted(progress.ended):
            waits = self._waiting.get(issue)
            if waits is not None and now < waits.again_at:
                continue
            live, status = progress.ended[issue]
            if self._finalize(live, status):
                del progress.ended[issue]
                self._waiting.pop(issue, None)
            else:
                self._wait(issue, now)

    def _wait(self, issue: int, now: float) -> None:
        waits = self._waiting.setdefault(issue, _Waiting(now))
        waits.again_at = now + waits.pause
        waits.pause = min(2 * waits.pause, MAX_RETRY)
        if not waits.told and now - waits.since >= TELL_AFTER:
            waits.told = True
            self._run.say(
                f"#{issue}: its worker has ended and somebody still has its lock:"
                " something that it started, perhaps"
            )

    def _finalize(self, live: Live, status: int | None) -> bool:
        """Close the claim of a worker that has ended; False while somebody has it."""
        run, issue = self._run, live.issue
        try:
            lock = run.context.locks.take_run(issue)
        except Busy:
            return False
        except StateError as error:
            run.hold(issue, "uncertain", f"its claim stays open: {error}")
            return True
        try:
            self._close(live, status, lock)
        except StateError as error:
            run.hold(issue, "uncertain", f"its claim stays open: {error}")
        finally:
            lock.close()
        return True

    def _close(self, live: Live, status: int | None, lock: RunLock) -> None:
        run, issue = self._run, live.issue
        namespaces = run.context.namespaces
        kept = namespaces.read(lock, issue)
        found = classify(kept, run.expected)
        told = f"its worker ended: {found.detail}"
        done = by_state(found, exit_status=status, told=told, now=run.now)
        if done is not None:
            namespaces.close_claim(lock, live.claim, done)
        facts: dict[str, Fact] = {
            "settled": "settled-namespace",
            "resumable": "resumable",
        }
        run.hold(issue, facts.get(found.kind, "uncertain"))
        became = None if done is None else done.classification
        why = "" if kept.saved is None else kept.saved.state.detail
        log = live.worker.log
        run.say(telling.finalized(issue, status, found, became, why, log))
        told_of = {"issue": issue, "found": found.kind, "settlement": found.settlement}
        run.tell("epic_issue_ended", **told_of)
        if found.kind == "uncertain":
            run.say(f"#{issue}: {found.detail}")
