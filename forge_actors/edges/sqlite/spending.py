"""What attempts of agents used, as rows; a sum of them is made by the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.agents import Usage
from forge_actors.domain.spending import KEPT_SECONDS, AttemptUsage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    import apsw

    from forge_actors.domain.changes import AttemptUsed


def save_usage(db: apsw.Connection, sql: dict[str, str], change: AttemptUsed) -> None:
    row, usage = change.used, change.used.usage
    values = (
        row.job,
        row.attempt,
        row.repo,
        row.provider,
        row.agent,
        row.session,
        row.resumed,
        row.at,
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usage.cost,
    )
    db.execute(sql["keep_usage"], values)
    db.execute(sql["forget_usage"], (row.at - KEPT_SECONDS,))


def usage_from(row: Sequence[Any]) -> AttemptUsage:
    """A row of `usage_of_session`."""
    job, attempt, repo, provider, agent, session, resumed, at, *used = row
    return AttemptUsage(
        job=job,
        attempt=attempt,
        repo=repo,
        provider=provider,
        agent=agent,
        usage=Usage(*used),
        at=at,
        session=session,
        resumed=bool(resumed),
    )
