"""Marks for schedules that are to go live in the next service that knows of them.

A mark is a file in the home: whichever service runs now does not heed it, and one that
is started later does so before it decides about any schedule.
"""

from __future__ import annotations

import hashlib
import json
import os

FOLDER = "activations"
#: Characters of a digest that name a mark.
SHORT = 32


def mark(home: str, schedule: str) -> str:
    """Leave one; its path."""
    folder = os.path.join(home, FOLDER)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = hashlib.sha256(schedule.encode()).hexdigest()[:SHORT]
    path = os.path.join(folder, f"{name}.json")
    draft = f"{path}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with open(os.open(draft, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump({"schedule": schedule}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    return path
