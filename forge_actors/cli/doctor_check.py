"""One thing that `doctor` looked at."""

from __future__ import annotations

import dataclasses
from typing import Literal

State = Literal["ok", "missing", "broken"]


@dataclasses.dataclass(frozen=True)
class Check:
    """What was found. Jobs run without what is missing, not with what is broken."""

    name: str
    state: State
    detail: str
