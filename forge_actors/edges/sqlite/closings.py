"""Where nothing starts, as rows: pauses, accounts of providers, the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

if TYPE_CHECKING:
    import apsw

    from forge_actors.domain.changes import AccountChanged, PauseBegan, PauseEnded
    from forge_actors.domain.policy_changes import PolicySet

Queries = dict[str, str]


def begin_pause(db: apsw.Connection, sql: Queries, change: PauseBegan) -> None:
    pause = change.pause
    db.execute(sql["begin_pause"], (pause.scope, pause.since, pause.jobs))


def end_pause(db: apsw.Connection, sql: Queries, change: PauseEnded) -> None:
    db.execute(sql["end_pause"], (change.scope,))


def keep_account(db: apsw.Connection, sql: Queries, change: AccountChanged) -> None:
    db.execute(sql["keep_account"], structs.astuple(change.account))


def set_policy(db: apsw.Connection, sql: Queries, change: PolicySet) -> None:
    db.execute(sql["set_policy"], structs.astuple(change.policy))
