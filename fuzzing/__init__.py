"""Fuzzing of everything that reads what others wrote: `python -m fuzzing`.

Each target of the table has a property that holds for whatever bytes it is given: a
value, or the documented error with a message that can be shown; what was encoded is
read as it was; what comes in pieces means the same as the whole; and all of it in a
bounded time. The tests run each on its seeds and on all that was ever found; here
atheris looks for more, led by the branches that are reached (design/fuzzing.md).
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Inputs that broke something once, in a folder for each target.
FOUND = Path(__file__).parent / "found"
