"""How many examples are drawn: fewer where another interpreter repeats the tests."""

from __future__ import annotations

import os

#: Of those that are drawn on the interpreter that runs everything.
SHARE = float(os.environ.get("TESTS_SHARE_OF_EXAMPLES", "1"))


def examples(count: int) -> int:
    return max(1, round(count * SHARE))
