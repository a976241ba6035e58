"""The caretaker: watches what runs of a repository that no actor owns.

It keeps the tokens taken until each attempt is gone, and its receipt for whoever owns
the repository next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import trio

from forge_actors.actors.worker import Worker
from forge_actors.domain.errors import MailboxClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.actors.tokens import Grant
    from forge_actors.domain.launch import Receipt
    from forge_actors.domain.ports import Clock, Launcher


class _Nobody:
    """The repository that these workers tell."""

    def tell(self, message: object) -> NoReturn:
        raise MailboxClosed


class Caretaker:
    """That of one repository. `run` is its task; the rest are notices."""

    def __init__(
        self,
        grants: Sequence[Grant],
        launcher: Launcher,
        clock: Clock,
        keep_receipt: Callable[[Receipt], None],
    ) -> None:
        self._workers: list[tuple[Worker, str, int]] = []
        self._scope = trio.CancelScope()
        self._ended = trio.Event()
        for grant in grants:
            assert grant.job is not None, "what has no owner any more is used"
            running = launcher.adopt(grant.job, grant.attempt)
            if running is None:
                grant.give_back()
                continue
            grant.ownerless = False
            worker = Worker(grant, _Nobody(), launcher, clock, keep_receipt)
            worker.adopt(running, suspended=None)
            self._workers.append((worker, grant.job, grant.attempt))

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Return when nothing runs any more, or after `let_go`."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    for worker, job, attempt in self._workers:
                        nursery.start_soon(worker.watch, job, attempt, None)
        finally:
            self._ended.set()

    def stop(self) -> None:
        """End what runs."""
        for worker, _, _ in self._workers:
            worker.stop()

    async def let_go(self) -> None:
        """Leave what runs to whoever adopts it."""
        for worker, _, _ in self._workers:
            worker.detach()
        self._scope.cancel()
        await self._ended.wait()
