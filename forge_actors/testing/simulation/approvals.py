"""Jobs that no person began: what they may do is decided by people, and then holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.testing.simulation.plan import Operation

if TYPE_CHECKING:
    from forge_actors.domain.changes import JobAdded, JobApproved
    from forge_actors.testing.simulation.books import Case
    from forge_actors.testing.simulation.world import World

#: One of so many is denied.
DENIED = 4


class ApprovalRules:
    """Judges by what was accepted, and by what people were told."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: Jobs that nobody has allowed what they declare.
        self._held: set[str] = set()

    def added(self, change: JobAdded) -> None:
        job = change.job.id
        authority = change.spec.authority
        if authority is None or set(authority.declared) <= set(authority.authorised):
            return
        self._held.add(job)
        if change.job.state != "waiting_for_approval":
            self._world.fail("held back", f"{job} is {change.job.state}")
        verb = "deny" if ord(job[-1]) % DENIED == 0 else "approve"
        decision = Operation(0.0, verb, job)
        self._world.timers.after(
            self._world.plan.person, lambda: self._world.clients.do(decision)
        )

    def approved(self, change: JobApproved) -> None:
        if change.job not in self._held:
            self._world.fail("held back", f"{change.job} is approved twice")
        self._held.discard(change.job)

    def dispatched(self, case: Case) -> None:
        if case.job in self._held:
            self._world.fail("held back", f"{case.job} starts, and nobody allowed it")
