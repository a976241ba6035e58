"""What stands for the ends of attempts and the reasons of waits: words and marks.

A colour never stands alone: what ended otherwise than well has a mark of its own.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.picture.ticks import span, written

if TYPE_CHECKING:
    from forge_actors.domain.timeline import Band, Run, Timeline

#: Characters of a name that are shown.
MAX_NAME = 80
#: Those of an id that lists show.
TAIL = 6


class Look(Struct, frozen=True):
    """How the attempts with one end look."""

    word: str
    #: The class in the style of a page.
    style: str
    #: Before a name in a picture, and in a line of text.
    sign: str
    letter: str


RUNNING = Look("running", "running", "▸", ">")
AGAIN = Look("tried again", "again", "↻", "~")
LOOKS = {
    "succeeded": Look("succeeded", "ok", "", "="),
    "failed": Look("failed", "failed", "✕", "x"),
    "timed_out": Look("timed out", "late", "◔", "t"),
    "cancelled": Look("cancelled", "cancelled", "⊘", "c"),
    "human_attention_required": Look("needs a person", "attention", "!", "!"),
    "orphaned": Look("lost", "unknown", "?", "?"),
    "stale": Look("stale", "unknown", "?", "?"),
    "unknown": Look("end unknown", "unknown", "?", "?"),
}
#: The reasons of waits in the order in which they are stacked, with their class.
REASONS = {
    "queued": "w1",
    "workspace": "w2",
    "heavy_check": "w3",
    "integration": "w4",
    "release_barrier": "w4",
    "dependency": "w5",
    "limit": "w6",
    "retry": "w7",
    "approval": "w8",
    "held": "w9",
}
BANDS = {
    "down": "the service did not run",
    "pressure": "the machine was busy",
    "drain": "draining",
    "policy": "a policy held work back",
    "pause": "paused",
    "closed": "a provider was closed",
}


def look(run: Run) -> Look:
    if run.outcome is None:
        return RUNNING
    return LOOKS.get(run.outcome, AGAIN)


def plain(text: str, most: int = MAX_NAME) -> str:
    """Text of others as one short line: nothing in it steers, hides or turns around."""
    kept = "".join(
        " " if char in "\t\r\n" else char
        for char in text[: most * 4]
        if char in "\t\r\n" or unicodedata.category(char) not in _NEVER
    )
    kept = " ".join(kept.split())
    return kept if len(kept) <= most else f"{kept[: most - 1]}…"


#: Controls, formats such as marks of direction, surrogates, separators of lines, and
#: what is no character.
_NEVER = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"})


def title(run: Run) -> str:
    """What an attempt is called."""
    return plain(run.name or "") or plain(f"{run.kind or 'job'} {run.job[-TAIL:]}")


def waits_for(reason: str) -> str:
    return f"waiting: {plain(reason).replace('_', ' ')}"


def told(timeline: Timeline, run: Run) -> list[str]:
    """All of an attempt, in a few lines."""
    how = look(run)
    end = how.word
    if run.exit_code is not None:
        end += f", exit code {run.exit_code}"
    if run.error is not None:
        end += f", {plain(run.error)}"
    name = title(run) if run.kind is None else f"{title(run)} ({plain(run.kind)})"
    lines = [name, f"{plain(run.repo)}, attempt {run.attempt}", end]
    lines.append(lasted(timeline, run.began, run.ended))
    if run.waited is not None:
        lines.append(f"waited {span(run.waited)}")
    if run.suspended:
        still = sum(
            (timeline.seconds if b is None else b) - a for a, b in run.suspended
        )
        lines.append(f"stood still {span(still)}")
    if run.tokens:
        lines.append(f"tokens {', '.join(map(plain, run.tokens))}")
    lines.append(f"job {plain(run.job)}")
    return lines


def lasted(timeline: Timeline, began: float | None, ended: float | None) -> str:
    """From when to when, and how long."""
    start = "before that" if began is None else written(timeline.epoch + began)
    if ended is None:
        last = timeline.seconds
        goes_on = "now" if timeline.live else "beyond this picture"
        end = goes_on
    else:
        last, end = ended, written(timeline.epoch + ended)
    if began is not None and ended is not None and start[:10] == end[:10]:
        end = end[11:]
    length = "" if began is None else f", {span(last - began)}"
    return f"{start} to {end}{length}"


def band_told(timeline: Timeline, band: Band) -> list[str]:
    """All of a stretch."""
    lines = [BANDS.get(band.kind, plain(band.kind))]
    if band.reason:
        lines.append(plain(band.reason, 200))
    if band.repo:
        lines.append(plain(band.repo))
    return [*lines, lasted(timeline, band.began, band.ended)]
