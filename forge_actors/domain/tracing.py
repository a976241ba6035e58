"""Trace contexts, as W3C writes them: what an attempt is a part of.

The ids of an attempt follow from its job, so nothing has to be kept: the job is told
before its span is, and a later service tells the same.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

#: The variable and, in lower case, the header that carry one.
VARIABLE = "TRACEPARENT"
HEADER = "traceparent"
SAMPLED = 1
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")


class TraceParent(NamedTuple):
    """A span of somebody, and whether it is kept."""

    trace: int
    span: int
    flags: int = SAMPLED

    def __str__(self) -> str:
        return f"00-{self.trace:032x}-{self.span:016x}-{self.flags:02x}"


def parse_trace(text: str | None) -> TraceParent | None:
    """What a text says; None if it is none, as the standard asks for."""
    found = _FORM.fullmatch(text or "")
    if found is None or found[1] == "ff":
        return None
    trace, span = int(found[2], 16), int(found[3], 16)
    if not trace or not span:
        return None
    return TraceParent(trace, span, int(found[4], 16) & SAMPLED)


def own_span(job: str, attempt: int, parent: TraceParent | None) -> TraceParent:
    """The span of an attempt: of the trace of its submitter, or of one of its job."""
    span = span_id(f"{job}.{attempt}")
    if parent is not None:
        return TraceParent(parent.trace, span, parent.flags)
    return TraceParent(_id(f"trace of {job}", 16), span)


def span_id(name: str) -> int:
    """The id of the span with this name."""
    return _id(f"span {name}", 8)


def _id(text: str, size: int) -> int:
    digest = hashlib.blake2b(text.encode(), digest_size=size).digest()
    return int.from_bytes(digest, "big") or 1
