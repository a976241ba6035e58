"""The programs and files of `examples/`, as they stand."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"


def program(name: str) -> Any:
    """What a program defines; it is not run."""
    return SimpleNamespace(**runpy.run_path(str(EXAMPLES / name)))
