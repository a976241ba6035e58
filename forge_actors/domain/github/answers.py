"""What an answer of GitHub means: its limits, its refusals, its links.

Texts of GitHub are shown and never decided by, but for the one mark of the second kind
of limit that has no other.
"""

from __future__ import annotations

import re
from email.utils import mktime_tz, parsedate_tz
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.github.issues import MAX_TOLD, GitHubFailed
from forge_actors.domain.github.wire import read_complaint
from forge_actors.domain.harmless import clean
from forge_actors.domain.redaction import bounded, redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.github.issues import FailureKind
    from forge_actors.domain.github.wire import Complaint

#: Seconds to wait after a limit that says nothing of its end, doubled with each more.
UNTOLD = 60.0
#: Seconds that are waited for a limit at most, whatever it says of itself.
MAX_WAIT = 2 * 3600.0
MAX_LINKS = 20
MAX_DATE = 64
_LINK = re.compile(r"<([^<>]{0,2048})>([^<>]{0,256})")
_SECONDARY = ("secondary-rate-limits", "abuse-rate-limits")


class Answer(Struct, frozen=True):
    """One answer; the names of its headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


def refusal(
    answer: Answer, what: str, now: float, *, before: int = 0
) -> GitHubFailed | None:
    """Why an answer is none, after so many limits in a row; None if it is one.

    `what` was asked for. `now` are seconds of the wall clock, for a server that does
    not say what its own clock says.
    """
    status = answer.status
    if status == 304 or 200 <= status < 300:
        return None
    told = read_complaint(answer.body)
    kind, wait = _kind(answer, told, now, before)
    words = [f"GitHub answered {status} to {what}"]
    if told.message:
        words.append(bounded(redact(clean(told.message)), MAX_TOLD))
    if wait is not None:
        words.append(f"it takes questions again in {wait:.0f} s")
    if request := answer.headers.get("x-github-request-id"):
        words.append(f"request {bounded(redact(clean(request)), 80)}")
    return GitHubFailed(kind, "; ".join(words), wait=wait)


def _kind(
    answer: Answer, told: Complaint, now: float, before: int
) -> tuple[FailureKind, float | None]:
    status, headers = answer.status, answer.headers
    if status in (403, 429):
        spent = headers.get("x-ratelimit-remaining") == "0"
        if status == 429 or spent or "retry-after" in headers or _is_secondary(told):
            return "rate-limited", _wait(headers, now, before, spent=spent)
    match status:
        case 401 | 403 | 407 | 451:
            return "denied", None
        case 404 | 410:
            return "not-found", None
        case 408:
            return "unavailable", None
        case _ if status >= 500:
            return "unavailable", _seconds(headers.get("retry-after"), headers, now)
        case _:
            return "malformed", None


def _is_secondary(told: Complaint) -> bool:
    url = told.documentation_url.lower()
    return "secondary rate" in told.message.lower() or url.endswith(_SECONDARY)


def _wait(headers: Mapping[str, str], now: float, before: int, *, spent: bool) -> float:
    """Seconds until a limit is over."""
    wait = _seconds(headers.get("retry-after"), headers, now)
    if wait is None and spent:
        reset = headers.get("x-ratelimit-reset", "")
        if reset.isascii() and reset.isdecimal() and len(reset) <= 12:
            wait = float(reset) - _their_clock(headers, now)
    if wait is None:
        wait = UNTOLD * 2.0 ** min(before, 16)
    return min(max(wait, 1.0), MAX_WAIT)


def _seconds(text: str | None, headers: Mapping[str, str], now: float) -> float | None:
    """A `retry-after`: seconds, or a date."""
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdecimal() and len(text) <= 9:
        return min(float(text), MAX_WAIT)
    moment = _date(text)
    if moment is None:
        return None
    return min(max(0.0, moment - _their_clock(headers, now)), MAX_WAIT)


def _their_clock(headers: Mapping[str, str], now: float) -> float:
    """What the server's clock says: ours may be wrong by hours."""
    moment = _date(headers.get("date", ""))
    return now if moment is None else moment


def _date(text: str) -> float | None:
    parts = parsedate_tz(text[:MAX_DATE])
    try:
        return None if parts is None else float(mktime_tz(parts))
    except (ValueError, OverflowError):
        return None


def spent(answer: Answer, now: float) -> float | None:
    """Seconds until the next question, where this was the last of an hour."""
    if answer.headers.get("x-ratelimit-remaining") != "0":
        return None
    return _wait(answer.headers, now, 0, spent=True)


def pace(headers: Mapping[str, str]) -> float:
    """Seconds that the server asks to leave between two questions."""
    text = headers.get("x-poll-interval", "")
    digits = text.isascii() and text.isdecimal() and len(text) <= 9
    return min(float(text), MAX_WAIT) if digits else 0.0


def following(link: str | None) -> str | None:
    """Where the next page is, by a `link` header."""
    for found in islice(_LINK.finditer(link or ""), MAX_LINKS):
        for parameter in found[2].split(";"):
            name, _, value = parameter.strip(" ,").partition("=")
            kinds = value.strip().strip('"').lower().split()
            if name.strip().lower() == "rel" and "next" in kinds:
                return found[1]
    return None
