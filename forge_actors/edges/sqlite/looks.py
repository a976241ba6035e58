"""The looks at repositories as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import apsw

    from forge_actors.domain.changes import LookSaved

_encode = msgspec.json.Encoder().encode


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
        look.fence,
        look.nonce,
        look.looked_at,
        *marked,
        look.failures,
        look.error,
        look.retry_at,
        look.repo,
    )
    db.execute(sql["save_look"], values)
