"""Server-sent events: what stands on the wire, and which events a reader wants.

An event has no name of its own, so that `onmessage` of a browser hears of all of them;
its kind is in its data. Named ones are about the stream: `gap` says that events are
missing and from where on there are some, `end` why it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from forge_actors.domain.events import EventQuery, EventView

EVENT_STREAM = "text/event-stream"
#: Nobody on the way keeps what it saw, or waits for more of it.
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}
#: Milliseconds after which a reader that was cut off comes again.
HELLO = b"retry: 2000\n\n"
#: A comment; without a blank line no reader takes it for an event.
KEEP_ALIVE = b":\n"

_encode = msgspec.json.Encoder().encode


class Entry(NamedTuple):
    """One event on its way to its readers."""

    seq: int
    repo: str | None
    job: str | None
    kind: str
    frame: bytes


def entry_of(view: EventView) -> Entry:
    frame = b"id: %d\ndata: %b\n\n" % (view.seq, _encode(view))
    return Entry(view.seq, view.repo_id or view.repo, view.job, view.kind, frame)


def resume_frame(seq: int) -> bytes:
    """Says how far a reader has come that was told of nothing."""
    return b"id: %d\n\n" % seq


def gap_frame(asked: int, first: int, last: int) -> bytes:
    """Says that events behind `asked` are not there, and where reading goes on."""
    if asked > last:
        after = last
        message = f"there is no event {asked}: the last one is {last}"
    else:
        after = first - 1
        message = f"events before {first} were removed; those behind {asked} are gone"
    told = {"asked": asked, "first": first, "last": last, "message": message}
    return b"event: gap\nid: %d\ndata: %b\n\n" % (after, _encode(told))


def end_frame(reason: str) -> bytes:
    return b"event: end\ndata: %b\n\n" % _encode({"reason": reason})


class Filter:
    """Which events one reader wants, by ids."""

    def __init__(self, query: EventQuery) -> None:
        self.repo = frozenset(query.repo)
        self.job = frozenset(query.job)
        self.kind = frozenset(query.kind)
        self.everything = not (self.repo or self.job or self.kind)
        #: Under what it is looked for: the narrowest that it names.
        self.keys: tuple[str, ...] = ("",)
        for name in ("job", "repo", "kind"):
            if values := getattr(query, name):
                self.keys = tuple({f"{name}:{value}" for value in values})
                break

    def takes(self, entry: Entry) -> bool:
        return (
            (not self.job or entry.job in self.job)
            and (not self.repo or entry.repo in self.repo)
            and (not self.kind or entry.kind in self.kind)
        )
