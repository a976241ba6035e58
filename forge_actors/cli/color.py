"""Colours for states, on a terminal and where nobody said otherwise."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

WHEN = ("auto", "always", "never")
_RESET = "\x1b[0m"
_RED, _GREEN, _YELLOW, _CYAN = (f"\x1b[3{number}m" for number in (1, 2, 3, 6))
#: The colour of a state; what waits has none.
_COLORS = {
    "succeeded": _GREEN,
    "ready": _GREEN,
    "dispatched": _CYAN,
    "running": _CYAN,
    "failed": _RED,
    "timed_out": _RED,
    "human_attention_required": _RED,
    "not ready": _RED,
    "cancelled": _YELLOW,
    "orphaned": _YELLOW,
    "stale": _YELLOW,
}


def add_color(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--color",
        choices=WHEN,
        default="auto",
        help="colour states (default: on a terminal, unless NO_COLOR is set)",
    )


class Painter:
    """Paints words in the colours of states, or leaves them as they are."""

    def __init__(self, when: str) -> None:
        terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        wanted = terminal and not os.environ.get("NO_COLOR")
        self._on = when == "always" or (when == "auto" and wanted)

    def state(self, text: str, state: str | None = None) -> str:
        """`text`, which is the state itself or stands for it."""
        color = _COLORS.get((text if state is None else state).strip())
        return f"{color}{text}{_RESET}" if self._on and color else text
