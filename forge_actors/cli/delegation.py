"""Which job a program is a part of that asks for more jobs."""

from __future__ import annotations

import os


def parent_of(home: str) -> dict[str, object] | None:
    """The attempt that we are a part of, if it is one of this home's jobs."""
    own = os.environ.get("FORGE_CONTROLLER_HOME")
    job = os.environ.get("FORGE_JOB_ID")
    attempt, fence = (os.environ.get(f"FORGE_{n}", "") for n in ("ATTEMPT", "FENCE"))
    if not job or not own or not (attempt.isdecimal() and fence.isdecimal()):
        return None
    if os.path.realpath(own) != os.path.realpath(home):
        return None
    return {"job": job, "attempt": int(attempt), "fence": int(fence)}
