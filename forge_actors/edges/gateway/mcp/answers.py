"""What a tool answers: harmless, of bounded size, and where there is more of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from forge_actors.domain.errors import (
    ActorStopped,
    FencingTokenStale,
    ForgeError,
    InvalidInput,
    LauncherDown,
    NotFound,
    Refused,
    StoreFailed,
    Unavailable,
)
from forge_actors.domain.harmless import clean_lines
from forge_actors.domain.redaction import bounded

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Characters of one answer: what an agent reads at once without being flooded.
MAX_ANSWER = 24_000
#: How long the texts and lists of an answer may be, tried until all of it fits.
_SIZES = ((4000, 50), (1000, 20), (200, 8), (60, 3))
MAX_DEPTH = 12

Json = dict[str, Any]


def answer_of(value: object, most: int = MAX_ANSWER) -> Json:
    """`value` as a JSON object whose text has at most `most` characters.

    `cut` is true in it where something was left out.
    """
    whole = _harmless(to_builtins(value, str_keys=True), 0)
    assert isinstance(whole, dict), "every answer has names in it"
    if size_of(whole) <= most:
        return whole
    for characters, items in _SIZES:
        smaller = {**_cut(whole, characters, items), "cut": True}
        if size_of(smaller) <= most:
            return smaller
    return {"cut": True, "note": "it is too large to be shown here"}


def fitting(rows: Sequence[Json], most: int = MAX_ANSWER - 2000) -> list[Json]:
    """As many of the rows of a list, from the first on, as one answer has room for."""
    kept: list[Json] = []
    for row in rows:
        shown = answer_of(row)
        most -= size_of(shown) + 1
        if most < 0:
            break
        kept.append(shown)
    return kept


def text_of(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def size_of(value: Json) -> int:
    return len(text_of(value))


def _harmless(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clean_lines(value)
    if depth > MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        return {
            clean_lines(name): _harmless(part, depth + 1)
            for name, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [_harmless(part, depth + 1) for part in value]
    return value


def _cut(value: Any, characters: int, items: int) -> Any:
    if isinstance(value, str):
        return bounded(value, characters)
    if isinstance(value, dict):
        return {
            bounded(name, characters): _cut(part, characters, items)
            for name, part in list(value.items())[: max(items, 60)]
        }
    if isinstance(value, list):
        kept = [_cut(part, characters, items) for part in value[:items]]
        left = len(value) - len(kept)
        return [*kept, f"… and {left} more"] if left else kept
    return value


#: What to do about an error, by its class; the first that fits.
_ADVICE: dict[type[ForgeError], str] = {
    InvalidInput: "Correct that argument and call again; nothing was changed.",
    NotFound: "See what there is with `jobs` or `repositories`.",
    FencingTokenStale: (
        "A newer attempt has taken the place of the job that you are a part of: stop"
        " working, and change nothing more."
    ),
    Refused: (
        "The present state does not allow it: look with `show` or `why` before you do"
        " anything else."
    ),
    Unavailable: (
        "The service ends or restarts. What was accepted is kept: connect again in a"
        " moment."
    ),
    StoreFailed: (
        "Nothing of it was kept. Ask the user to run `forge-actors doctor`; try again"
        " only then."
    ),
    LauncherDown: "Nothing can start for now. Try again in a moment.",
    ActorStopped: (
        "Whether it was done is not known: look with `show` or `jobs` before you repeat"
        " it."
    ),
}
_OTHERWISE = "Try again once; if it fails again, tell the user what it says."


def error_of(error: ForgeError) -> Json:
    """An error as an agent can act on it: its code, what it says, and what to do."""
    kinds = (kind for kind in _ADVICE if isinstance(error, kind))
    advice = _ADVICE.get(next(kinds, ForgeError), _OTHERWISE)
    told: Json = {"code": error.code, "message": bounded(str(error), 4000)}
    if isinstance(error, InvalidInput):
        told["field"] = error.field
        if error.allowed:
            told["allowed"] = list(error.allowed)
    return answer_of({"error": {**told, "what_to_do": advice}})
