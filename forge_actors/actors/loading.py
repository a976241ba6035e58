"""Loading the saved jobs of a repository, for its actor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.jobs import RESERVED
from forge_actors.domain.poison import cause

if TYPE_CHECKING:
    from forge_actors.actors.moves import Moves
    from forge_actors.actors.repository_context import Context
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.ledger import Ledger


def load(context: Context, ledger: Ledger, moves: Moves, *, careful: bool) -> list[Job]:
    """The jobs that have not ended. A careful actor sets aside what it cannot read."""
    store, now = context.store, context.clock.now()
    if not (careful or ledger.poisoned):
        return store.load_jobs(ledger.repo)
    jobs, unreadable = store.load_readable_jobs(ledger.repo)
    for job, (state, error) in unreadable.items():
        if job in ledger.poisoned:
            continue
        # Of one that may run nobody knows what it claims.
        if not careful or state in RESERVED:
            raise error
        moves.add(ledger.set_aside(job, cause(error), now))
    return jobs
