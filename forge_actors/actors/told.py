"""Told: what the supervisor says of where nothing starts, as moves of a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.actors.repository_messages import (
    AccountsChanged,
    PausesChanged,
    PolicyChanged,
)

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change
    from forge_actors.domain.ledger import Ledger


def told_of(
    ledger: Ledger,
    message: PausesChanged | AccountsChanged | PolicyChanged,
    now: float,
) -> list[Change]:
    """Let the ledger go by it from now on."""
    match message:
        case PausesChanged(pauses, let_go):
            return ledger.told_of(pauses, now, let_go=let_go)
        case AccountsChanged(closed, tried, spent):
            return ledger.told_of_accounts(closed, tried, now, spent)
        case PolicyChanged(policy):
            return ledger.told_of_policy(policy, now)
