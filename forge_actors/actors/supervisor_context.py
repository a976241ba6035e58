"""What the supervisor is given by the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.actors.isolating import Isolating
from forge_actors.actors.maintenance_context import Context as MaintenanceContext
from forge_actors.actors.worker import Worker
from forge_actors.domain.accounts import Account
from forge_actors.domain.capacity import Limits
from forge_actors.domain.jobs import Job
from forge_actors.domain.policies import Policy
from forge_actors.domain.restarts import RestartPolicy
from forge_actors.domain.scopes import Pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors.tokens import Grant
    from forge_actors.actors.worker import Repository
    from forge_actors.domain.launch import LaunchOrder, Receipt
    from forge_actors.domain.ports import Clock, Launcher, Store


class Context(Struct, frozen=True):
    """What the supervisor is given by the runtime."""

    limits: Limits
    store: Store
    launcher: Launcher
    clock: Clock
    #: Why the machine is under pressure now, or None.
    pressure: Callable[[], str | None]
    make_order: Callable[[Job], LaunchOrder]
    #: Says that a repository's folder is gone, or None if it is there.
    gone: Callable[[str], str | None]
    #: Receipts of attempts that ended while nobody owned them, by job and attempt.
    unclaimed: dict[tuple[str, int], Receipt]
    last_dispatch: dict[str, float]
    #: Repositories with jobs that have not ended.
    busy: tuple[str, ...]
    #: What makes worktrees; without it no job that wants one can start.
    isolating: Isolating | None = None
    #: Those of everything and of providers.
    pauses: tuple[Pause, ...] = ()
    accounts: tuple[Account, ...] = ()
    policy: Policy = Policy()
    #: Somebody may be there to see to what refuses a job, such as a login.
    attended: bool = True
    #: What runs outlives this runtime, so a worker that is killed only lets go of it.
    lasting: bool = False
    restarts: RestartPolicy = RestartPolicy()
    #: What the clean-up needs; None: there is none.
    maintenance: MaintenanceContext | None = None
    #: Try a failed pass again, as an embedding program wants; else it ends the runtime.
    retries_passes: bool = False

    def make_worker(
        self, unclaimed: Callable[[Receipt], None], grant: Grant, owner: Repository
    ) -> Worker:
        """The worker of a grant, for this owner."""
        tools = self.launcher, self.clock, unclaimed, self.isolating
        worker = Worker(grant, owner, *tools)
        if self.lasting:
            worker.detach()
        return worker
