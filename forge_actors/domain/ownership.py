"""Who owns a home: one runtime at a time, each with a larger epoch than the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.changes import (
    EventsForgotten,
    JobDispatched,
    JobEnded,
    JobRan,
    JobRequeued,
    JobsForgotten,
)
from forge_actors.domain.errors import WriterFenced
from forge_actors.domain.fence import Claim, may_write
from forge_actors.domain.launch import ProcessIdentity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.domain.fence import Action


class Owner(Struct, frozen=True):
    """The runtime that may write in a home.

    `instance` is new for each start, `release` is what it runs, `acquired_at` seconds
    of the wall clock.
    """

    epoch: int
    instance: str
    process: ProcessIdentity
    release: str
    acquired_at: float


_ACTIONS: dict[type, Action] = {
    JobDispatched: "consume_queue",
    JobRan: "renew_lease",
    JobRequeued: "release_lease",
    JobEnded: "write_process_terminal",
    JobsForgotten: "cleanup",
    EventsForgotten: "cleanup",
}


def claim_of(owner: Owner) -> Claim:
    """What the owner of a store shows to write in it."""
    # A store belongs to one home, so which one that is makes no difference.
    return Claim("", owner.instance, owner.process.pid, owner.epoch)


def fenced(
    mine: Owner | None, found: Owner | None, changes: Sequence[Change]
) -> WriterFenced:
    """Why `mine` may not save these changes in the store of `found`.

    A store that nobody took over may be written to by whoever took nothing over.
    """
    claim = None if mine is None else claim_of(mine)
    # Nor does it matter whether the other one lives: it may have ended since.
    reason = may_write(claim, found, None, home="", owner_alive=True)
    assert reason is not None, "another epoch is another owner"
    kinds = [_ACTIONS[type(change)] for change in changes if type(change) in _ACTIONS]
    return WriterFenced(kinds[0] if kinds else "scheduler_write", reason)
