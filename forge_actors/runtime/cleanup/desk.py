"""The desk of the clean-up program: what a class reads, asks, and tells of."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.errors import WriterFenced
from forge_actors.domain.fence import may_write
from forge_actors.domain.maintenance import MAX_ASKED
from forge_actors.domain.redaction import bounded
from forge_actors.edges.cleanup import wire
from forge_actors.edges.cleanup.folders import Unsafe, opened_home
from forge_actors.edges.cleanup.wire import printable
from forge_actors.edges.sqlite.guard import owner_from
from forge_actors.runtime.cleanup.protected import unprotected
from forge_actors.runtime.cleanup.talk import RunOver
from forge_actors.runtime.homes import REMOVED_LOG

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from forge_actors.domain.cleaning import CleanClass, Removal, Skip
    from forge_actors.domain.maintenance import CleanOrder
    from forge_actors.domain.worktrees import Worktree
    from forge_actors.edges.sqlite.looking import StoreLook
    from forge_actors.runtime.cleanup.talk import Talk

#: Bytes of the list of what was removed; the one before it is kept too.
MAX_LOG = 4 << 20
#: Characters of a name, or of a reason, that are told.
MAX_TEXT = 500


class RunDesk:
    """The `Desk` of one run; the counts are those of the visit that lasts."""

    def __init__(
        self,
        order: CleanOrder,
        store: StoreLook,
        talk: Talk,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self.request = order.request
        self.home = order.request.home
        self.rules = order.rules
        self._order = order
        self._store = store
        self._talk = talk
        self._steady = steady
        self._deadline = steady() + order.limits.seconds
        self._told = wire.Told()
        self.report = ClassReport("store")

    # -- one visit -------------------------------------------------------------------

    def begin(self, clean_class: CleanClass) -> None:
        """Count from now on for this class."""
        self.report = ClassReport(clean_class)

    def end(self, report: ClassReport) -> ClassReport:
        """What the class says, with what was counted here; what was removed is told."""
        counted = self.report
        counted.size, counted.cursor = report.size, report.cursor
        counted.due_at = report.due_at
        if report is not counted:
            counted.failed += report.failed
            counted.error = counted.error or report.error
        self.flush()
        return counted

    def flush(self) -> None:
        """Tell of what was not told of yet."""
        told, self._told = self._told, wire.Told()
        if told.removals and not self.request.dry_run:
            self._log(told.removals)
        if told.removals or told.skips:
            self._talk.tell(told)

    @property
    def out_of_time(self) -> bool:
        return self._steady() >= self._deadline

    def check_claim(self) -> None:
        """Go on only while whoever ordered this may write in the home.

        Raises:
            RunOver: another runtime has it.
        """
        claim = self._order.claim
        if claim is None:
            return
        rows = self.read("owner")
        owner = owner_from(rows[0]) if rows else None
        alive = os.getppid() == claim.pid
        reason = may_write(claim, owner, None, home=claim.home, owner_alive=alive)
        if reason is not None:
            raise RunOver(str(WriterFenced("cleanup", reason)))

    # -- what a class uses -----------------------------------------------------------

    def read(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """See `Desk`."""
        return self._store.read(query, *parameters)

    def may_go_on(self) -> bool:
        """See `Desk`."""
        limits = self._order.limits
        used_up = (
            self.report.scanned >= limits.scans
            or self.report.removed >= limits.removals
        )
        return not (used_up or self.out_of_time)

    def scanned(self, count: int = 1) -> None:
        """See `Desk`."""
        self.report.scanned += count

    def forget_jobs(self, jobs: Sequence[str]) -> list[str]:
        """See `Desk`."""
        gone: list[str] = []
        for start in range(0, len(jobs), MAX_ASKED):
            asked = list(jobs[start : start + MAX_ASKED])
            gone += self._talk.ask(wire.ForgetJobs(asked)).jobs
        return gone

    def forget_events(self, before: int) -> int:
        """See `Desk`."""
        before = unprotected(self.read, before)
        return self._talk.ask(wire.ForgetEvents(before)).count

    def record(self, worktree: Worktree, step: str) -> None:
        """See `Desk`."""
        self._talk.ask(wire.Record(worktree, step))

    def upkeep(self) -> int:
        """See `Desk`."""
        return self._talk.ask(wire.Upkeep()).count

    def removed(self, removal: Removal) -> None:
        """See `Desk`."""
        self.report.removed += 1
        self.report.bytes += removal.bytes
        self._told.removals.append(
            type(removal)(
                removal.clean_class,
                _text(removal.what),
                _text(removal.reason),
                removal.bytes,
            )
        )
        self._flush_if_full()

    def skipped(self, skip: Skip) -> None:
        """See `Desk`."""
        reason = _text(skip.reason)
        counts = self.report.skipped
        counts[reason] = counts.get(reason, 0) + 1
        self._told.skips.append(type(skip)(skip.clean_class, _text(skip.what), reason))
        self._flush_if_full()

    def failed(self, what: str, error: str) -> None:
        """See `Desk`."""
        self.report.failed += 1
        if self.report.error is None:
            self.report.error = _text(f"{what}: {error}" if what else error)

    # -- telling ---------------------------------------------------------------------

    def _flush_if_full(self) -> None:
        told = self._told
        if max(len(told.removals), len(told.skips)) >= wire.MAX_TOLD:
            self.flush()

    def _log(self, removals: Sequence[Removal]) -> None:
        """Write down what was removed and why, for a person who looks for it later."""
        at = round(time.time(), 3)
        lines = [
            json.dumps(
                {
                    "at": at,
                    "class": each.clean_class,
                    "what": each.what,
                    "reason": each.reason,
                    "bytes": each.bytes,
                }
            )
            for each in removals
        ]
        # Where it cannot be written the disk may be full, and that is what we are for.
        with suppress(OSError, Unsafe), opened_home(self.home) as home:
            written = home.entry(REMOVED_LOG)
            if written is not None and written.bytes > MAX_LOG:
                older = f"{REMOVED_LOG}.1"
                os.replace(REMOVED_LOG, older, src_dir_fd=home.fd, dst_dir_fd=home.fd)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            fd = os.open(REMOVED_LOG, flags | os.O_CLOEXEC, 0o600, dir_fd=home.fd)
            with open(fd, "w", encoding="ascii") as log:
                log.write("\n".join(lines) + "\n")


def _text(text: str) -> str:
    return bounded(printable(text), MAX_TEXT)
