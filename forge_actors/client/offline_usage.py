"""What the store of a home that nothing serves says of what agents used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from forge_actors.client import offline
from forge_actors.domain.spending import (
    COUNTED,
    MAX_SUMS,
    UsageReport,
    UsageSum,
    sum_of,
)

if TYPE_CHECKING:
    from forge_actors.domain.spending import Group

_KNOWN = "SELECT 1 FROM sqlite_master WHERE name = 'usage'"
_KEYS: dict[Group, str] = {
    "attempt": "usage.id",
    "job": "job",
    "repo": "coalesce(repository.name, repo)",
    "provider": "provider",
    "agent": "agent",
    "day": "day",
}
#: Attempts and days are in their order, the last one first.
_ORDERS: dict[Group, str] = {"attempt": "max(at) DESC, key", "day": "key DESC"}
_SUMS = ", ".join(f"sum({name})" for name in COUNTED)
_KNOWN_OF = ", ".join(f"count({name})" for name in COUNTED)
_FROM = "FROM usage LEFT JOIN repository ON repository.id = usage.repo WHERE at >= ?"


def usage(home: str, by: Group, since: float | None) -> dict[str, Any]:
    """What a `GET /v1/usage` would say."""
    groups: list[UsageSum] = []
    total = UsageSum(None, 0, None, None, None, None)
    if offline.rows(home, _KNOWN):  # else an older release wrote it
        order = _ORDERS.get(by, "sum(cost) DESC, tokens DESC, key")
        columns = f"count(*), {_SUMS}, {_KNOWN_OF}"
        tokens = "coalesce(sum(input_tokens), 0) + coalesce(sum(output_tokens), 0)"
        moment = since or 0.0
        found = offline.rows(
            home,
            f"SELECT {_KEYS[by]} AS key, {columns}, {tokens} AS tokens {_FROM}"
            f" GROUP BY key ORDER BY {order} LIMIT {MAX_SUMS}",
            [moment],
        )
        groups = [sum_of(row[:-1]) for row in found]
        [all_of_it] = offline.rows(home, f"SELECT NULL, {columns} {_FROM}", [moment])
        total = sum_of(all_of_it)
    report = UsageReport(by, offline.moment(since), groups, total)
    told: dict[str, Any] = msgspec.to_builtins(report)
    return told
