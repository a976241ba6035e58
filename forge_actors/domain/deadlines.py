"""The four time budgets of a job: admission, queue, execution, idle.

Admission runs from acceptance until the scheduler has seen the job, queue from then
until it starts, execution from start to end, idle between two pieces of output. The
launcher keeps the last two, since they must hold while no scheduler runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.jobs import AGENT_KINDS, HEAVY_KINDS

if TYPE_CHECKING:
    from forge_actors.domain.jobs import Kind

MIN_BUDGET = 1.0
MAX_BUDGET = 30 * 86_400.0
CHECK_EXECUTION = 3600.0
AGENT_EXECUTION = 12 * 3600.0

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def default_execution(kind: Kind) -> float | None:
    """Seconds a job of this kind may run where nobody says otherwise."""
    if kind in HEAVY_KINDS:
        return CHECK_EXECUTION
    return AGENT_EXECUTION if kind in AGENT_KINDS else None


def parse_duration(value: str | float, *, field: str) -> float:
    """Seconds from `90`, `"90"`, `"90s"`, `"30m"`, `"12h"` or `"2d"`.

    Raises:
        InvalidInput: anything else.
    """
    if isinstance(value, str):
        text = value.strip().lower()
        number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
        unit = text[len(number) :].strip() or "s"
        try:
            seconds = float(number) * _UNITS[unit]
        except (ValueError, KeyError):
            raise InvalidInput(
                field, f"{value!r} is no duration; write for example 90s, 30m or 2h"
            ) from None
    else:
        seconds = float(value)
    if not 0 <= seconds < float("inf"):
        raise InvalidInput(field, f"{value!r} is no duration of zero or more")
    return seconds


def parse_budget(value: str | float, *, field: str) -> float:
    """A duration within the bounds of a time budget: 1 s to 30 days."""
    seconds = parse_duration(value, field=field)
    if not MIN_BUDGET <= seconds <= MAX_BUDGET:
        raise InvalidInput(field, f"{value!r} is outside 1s to 30d")
    return seconds
