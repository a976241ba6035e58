"""The history in the store: the events of one commit together, as one row.

A row for each event would cost every job three or four statements more, and nobody
reads one event alone. A page is the JSON array of consecutive events, under the number
of its first one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from forge_actors.domain.events import Event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import apsw

#: Events in one row at most, so that reading a few never decodes very many.
PAGE_EVENTS = 256

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Event]).decode


def append(
    db: apsw.Connection, sql: dict[str, str], first: int, events: Sequence[Event]
) -> None:
    """Write consecutive events, the first one with the number `first`."""
    for start in range(0, len(events), PAGE_EVENTS):
        page = _encode(events[start : start + PAGE_EVENTS])
        db.execute(sql["add_history"], (first + start, page))


def read(
    db: apsw.Connection, sql: dict[str, str], after: int, limit: int
) -> list[Event]:
    """The first events, at most `limit`, with a larger number than `after`."""
    found: list[Event] = []
    for first, page in db.execute(sql["history_after"], (after,)):
        for number, event in enumerate(_decode(page), start=first):
            if number > after:
                found.append(structs.replace(event, seq=number))
                if len(found) == limit:
                    return found
    return found


def find(
    db: apsw.Connection,
    sql: dict[str, str],
    after: int,
    until: int,
    fields: Mapping[str, Sequence[str]],
) -> list[Event]:
    """The events in a range of numbers, its end included, whose fields have one of
    these values each. Empty lists mean any.

    Only pages that hold the values somewhere are decoded.
    """
    wanted = {name: values for name, values in fields.items() if values}
    texts = [
        _encode([f'"{name}":"{value}"' for value in values]).decode()
        for name, values in wanted.items()
    ]
    texts_or_any = (*texts, None, None, None)[:3]
    found = []
    for first, page in db.execute(sql["history_with"], (after, until, *texts_or_any)):
        for number, event in enumerate(_decode(page), start=first):
            if after < number <= until and all(
                getattr(event, name) in values for name, values in wanted.items()
            ):
                found.append(structs.replace(event, seq=number))
    return found


def last(db: apsw.Connection, sql: dict[str, str]) -> int:
    """The number of the last event; 0 if there is none."""
    for first, page in db.execute(sql["last_history"]):
        assert isinstance(first, int)
        return first + len(_decode(page)) - 1
    return 0
