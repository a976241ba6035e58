"""What is trusted of repositories, as rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from forge_actors.domain.trust_changes import TrustDiffers, TrustRemoved, TrustSaved

Queries = dict[str, str]


def _save(db: apsw.Connection, sql: Queries, change: TrustSaved) -> None:
    db.execute(sql["save_trust"], (change.repo, change.body))


def _differ(db: apsw.Connection, sql: Queries, change: TrustDiffers) -> None:
    db.execute(sql["save_differs"], (change.differs, change.repo))


def _remove(db: apsw.Connection, sql: Queries, change: TrustRemoved) -> None:
    db.execute(sql["remove_trust"], (change.repo,))


#: See `forge_actors.edges.sqlite.writing`.
WRITERS: dict[type, Callable[[apsw.Connection, Queries, Any], None]] = {
    TrustSaved: _save,
    TrustDiffers: _differ,
    TrustRemoved: _remove,
}
