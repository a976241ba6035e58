"""The looks at repositories as rows, and what is asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from forge_actors.domain.git_status import GitStatus
from forge_actors.domain.looking import Look, Mark

if TYPE_CHECKING:
    import apsw

    from forge_actors.domain.changes import LookSaved

_encode = msgspec.json.Encoder().encode
_status = msgspec.json.Decoder(GitStatus)


def save_look(db: apsw.Connection, sql: dict[str, str], change: LookSaved) -> None:
    """Write the row of a look. Of a repository that was removed meanwhile there is
    none."""
    look, dirty = change.look, change.look.dirty
    marked: tuple[object, ...] = (None,) * 4
    if dirty is not None:
        marked = (dirty.nonce, dirty.reason, dirty.at, dirty.source)
    values = (
        None if look.status is None else _encode(look.status),
        look.sampled_at,
        look.busy,
        look.nonce,
        look.looked_at,
        *marked,
        look.failures,
        look.error,
        look.retry_at,
        look.repo,
    )
    db.execute(sql["save_look"], values)


def look_from(row: tuple[Any, ...]) -> Look:
    """A row of the query `look`, `looks` or `unfinished_looks`."""
    repo, sample, sampled_at, busy, nonce, looked_at = row[:6]
    mark, reason, at, source, failures, error, retry_at = row[6:]
    return Look(
        repo,
        status=None if sample is None else _status.decode(sample),
        sampled_at=sampled_at,
        busy=bool(busy),
        nonce=nonce,
        looked_at=looked_at,
        dirty=None if mark is None else Mark(mark, reason, at, source),
        failures=failures,
        error=error,
        retry_at=retry_at,
    )
