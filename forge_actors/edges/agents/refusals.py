"""Why a service refused an agent, by the words of its message.

Events come first; this is for what only a text tells.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.domain.agents import LimitKind

#: In this order: what says more comes first.
_WORDS: tuple[tuple[LimitKind, re.Pattern[str]], ...] = (
    (
        "auth",
        re.compile(
            r"\b401\b|not logged in|please run /login|log ?in again|sign in again"
            r"|no authentication information|invalid api key|authentication[ _]failed"
            r"|failed to authenticate|unauthorized|invalid[ _]token|token has expired"
            r"|missing environment variable.*(key|token)|oauth token",
            re.IGNORECASE,
        ),
    ),
    (
        "budget",
        re.compile(
            r"credit balance|insufficient[ _](credit|quota|balance)|budget|billing"
            r"|\b402\b|payment required|spend(ing)? limit",
            re.IGNORECASE,
        ),
    ),
    (
        "usage",
        re.compile(
            r"usage[ _]limit|hit your (\w+ )?limit|quota|limit reached|limit will reset"
            r"|weekly limit|session limit",
            re.IGNORECASE,
        ),
    ),
    ("overload", re.compile(r"\b(529|503)\b|overloaded|at capacity", re.IGNORECASE)),
    (
        "rate",
        re.compile(r"\b429\b|rate[ _-]?limit|too many requests", re.IGNORECASE),
    ),
)
#: The HTTP statuses that say it alone.
_STATUSES: dict[int, LimitKind] = {
    401: "auth",
    402: "budget",
    403: "auth",
    429: "rate",
    503: "overload",
    529: "overload",
}
#: Characters of a message that are looked at.
LOOKED_AT = 4000


def kind_of_text(message: str) -> LimitKind | None:
    """What the message says that refused; None if it speaks of something else."""
    message = message[:LOOKED_AT]
    return next((kind for kind, words in _WORDS if words.search(message)), None)


def kind_of_status(status: int | None, message: str) -> LimitKind | None:
    """The same, of an answer that had this HTTP status."""
    if status is None:
        return kind_of_text(message)
    kind = _STATUSES.get(status)
    # A 429 is a spent account as well as a short burst: the words tell which.
    if kind == "rate" and kind_of_text(message) == "usage":
        return "usage"
    return kind
