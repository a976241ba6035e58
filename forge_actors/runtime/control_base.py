"""What the nouns of the control share: the parts of one runtime, and its actors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from forge_actors.actors import supervisor
from forge_actors.actors.repository import Cancel
from forge_actors.domain.errors import MailboxClosed, NotFound
from forge_actors.runtime.endings import Endings
from forge_actors.runtime.views import roots_of, view

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.domain.ports import Clock
    from forge_actors.edges.node.launcher import NodeLauncher
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.admission import Admission
    from forge_actors.runtime.in_force import SettingsInForce
    from forge_actors.runtime.registry import Registry


class ControlBase:
    """The parts of one runtime; a class for each noun adds what can be asked of it."""

    def __init__(
        self,
        *,
        home: Path,
        store: SqliteStore,
        launcher: NodeLauncher,
        clock: Clock,
        settings: SettingsInForce,
        registry: Registry,
        admission: Admission,
        mailbox: Mailbox[supervisor.Message],
    ) -> None:
        self._home = home
        self._roots = roots_of(home)
        self._view = partial(view, roots=self._roots)
        self._store = store
        self._launcher = launcher
        self._clock = clock
        self._settings = settings
        self._registry = registry
        self._admission = admission
        self._supervisor = mailbox
        self._started_at = clock.now()
        self._endings = Endings(store)
        #: Set once somebody has asked for an orderly stop.
        self.stop_requested = trio.Event()
        self._closed = trio.Event()

    async def _open(self, repo: str) -> supervisor.RepositoryMailbox:
        return await self._supervisor.ask(lambda reply: supervisor.Open(repo, reply))

    async def _cancel(self, job_id: str, repo: str, grace: float | None) -> None:
        while True:
            actor = await self._open(repo)
            try:
                await actor.ask(lambda reply: Cancel(job_id, grace, reply))
            except MailboxClosed:
                continue  # it fell asleep before our message came: wake it
            except NotFound:
                pass  # it ended meanwhile
            return

    def _row(self, job_id: str) -> tuple[Any, ...]:
        rows = self._store.read("view_job", job_id)
        if not rows:
            raise NotFound(f"no job has the id {job_id!r}")
        return rows[0]
