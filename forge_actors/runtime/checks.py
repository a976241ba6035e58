"""Checks: the command that an agent's work has to pass, run in the folder of the job.

Its order is that of the job with another command, and its attempt tells what there is
to know of a failure. That is found out anew by whoever adopts it after a crash.
"""

from __future__ import annotations

import hashlib
import os
import re
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.errors import ForgeError
from forge_actors.domain.verifying import CheckReport
from forge_actors.edges.git import changes
from forge_actors.edges.node import logs
from forge_actors.runtime.orders import log_base

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.jobs import JobSpec
    from forge_actors.domain.launch import Ending, ProcessIdentity, Receipt
    from forge_actors.domain.ports import RunningAttempt, Store
    from forge_actors.edges.node.logs import Stream
    from forge_actors.runtime.budget_guard import AttemptBudget

#: Bytes of the end of each stream by which two failures are compared.
COMPARED = 64 * 1024
#: Bytes of the end of stdout that the error tells of.
SAID = 4096
_STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
#: What differs from run to run: folders for a while, addresses, and numbers, such as
#: times.
_VARIES = re.compile(
    rb"(?:/private)?(?:/var/folders|(?:/var)?/tmp)/[^\s'\":,;()<>]*"
    rb"|0[xX][0-9a-fA-F]+|\d+"
)


class CheckAttempt:
    """One attempt of a check; implements `domain.ports.RunningAttempt`."""

    def __init__(
        self,
        home: str,
        running: RunningAttempt,
        store: Store,
        spec: JobSpec,
        key: tuple[str, int],
        budget: AttemptBudget,
    ) -> None:
        self._home = home
        self._running = running
        self._store = store
        self._spec = spec
        self._job = key[0]
        self._log = log_base(home, *key)
        self._budget = budget
        self._receipt: Receipt | None = None

    @property
    def receipt(self) -> Receipt | None:
        return self._receipt or self._running.receipt

    async def started(self) -> ProcessIdentity | None:
        return await self._running.started()

    def once_settled(self, notify: Callable[[], object]) -> bool:
        return False  # more is to be done by the time it has ended

    def stop(self, *, grace: float | None = None, ending: Ending = "stop") -> None:
        self._running.stop(grace=grace, ending=ending)

    def pause(self) -> None:
        self._running.pause()

    def resume(self) -> None:
        self._running.resume()

    async def exited(self) -> Receipt:
        if self._receipt is None:
            receipt = await self._running.exited()
            if receipt.ending in ("exit", "wall") and receipt.exit_code != 0:
                report = await self._report()
                receipt = structs.replace(receipt, check=report)
            self._receipt = receipt
        return self._receipt

    async def _report(self) -> CheckReport:
        said = self._end_of("stdout", SAID).decode("utf-8", "replace")
        return CheckReport(said, await self._likeness(), self._budget.spent(None))

    async def _likeness(self) -> str | None:
        folder = folder_of(self._home, self._store, self._spec, self._job)
        return await likeness(self._log, folder)

    def _end_of(self, stream: Stream, size: int) -> bytes:
        return end_of(self._log, stream, size)


async def likeness(log: str, folder: str) -> str | None:
    """What two failures share that printed the same, but for what varies, and left the
    same files in the folder; None if nobody can tell."""
    try:
        files = await changes.tree_of(folder)
    except (ForgeError, OSError):
        return None
    printed = (end_of(log, each, COMPARED) for each in _STREAMS)
    parts = [files.encode(), *(_VARIES.sub(b"0", text) for text in printed)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def end_of(log: str, stream: Stream, size: int) -> bytes:
    """The end of what an attempt printed, as far as that is kept."""
    try:
        return logs.read(log, stream, -size, size).data
    except OSError:
        return b""


def folder_of(home: str, store: Store, spec: JobSpec, job: str) -> str:
    """Where a job works: its worktree, or its folder in the checkout."""
    isolation = spec.isolation
    if isolation is None:
        return spec.cwd
    known = store.worktree(isolation.of or job)
    path = "" if known is None else known.path
    return os.path.join(os.path.realpath(home), path)
