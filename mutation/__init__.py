"""Breaks the code on purpose and looks whether a test notices: `python -m mutation`.

mutmut makes the mutants, finds the tests that reach a function, and switches from one
mutant to the next within a running interpreter. What is here does what it does not:
it draws a sample by seed, leaves out what no test should look at, tries the cheap
tests first, ends what hangs, and writes what came of it; see `design/mutation.md`.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Where mutmut keeps the changed copy of the tree; what is found is kept beside it.
PLACE = Path("mutants")
#: The rooms that are tried, each with what is below it.
ROOMS = ("forge_actors/domain", "forge_actors/actors")


class Wrong(Exception):
    """Why nothing can be tried, in a sentence."""
