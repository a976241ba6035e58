"""What attempts leave in a home, beside the store: receipts, and their output."""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.domain.restoration import Trace

if TYPE_CHECKING:
    from pathlib import Path

_LOG = re.compile(r"([0-9a-z]+)\.([0-9]{1,9})\.\w+(\.\w+)?")


def traces(home: Path) -> dict[str, Trace]:
    """The latest attempt of each job that left something; one that was written down by
    a node agent tells its fence too."""
    found: dict[str, Trace] = {}
    with suppress(OSError), os.scandir(home / "logs") as entries:
        for entry in entries:
            named = _LOG.fullmatch(entry.name)
            if named is not None:
                evidence = f"its output is in logs/{entry.name}"
                _keep(found, named[1], Trace(int(named[2]), None, evidence))
    for path in sorted((home / "receipts").glob("*.jsonl")):
        for job, attempt, fence in _records(path):
            evidence = f"it is in receipts/{path.name}"
            _keep(found, job, Trace(attempt, fence, evidence))
    return found


def _keep(found: dict[str, Trace], job: str, trace: Trace) -> None:
    known = found.get(job)
    if known is None or _rank(trace) > _rank(known):
        found[job] = trace


def _rank(trace: Trace) -> tuple[int, bool]:
    return trace.attempt, trace.fence is not None


def _records(path: Path) -> list[tuple[str, int, int]]:
    """Job, attempt and fence of each line that tells them."""
    found = []
    with suppress(OSError):
        for line in path.read_bytes().split(b"\n"):
            with suppress(ValueError, KeyError, TypeError):
                told = json.loads(line)
                job, attempt, fence = told["job"], told["attempt"], told["fence"]
                if isinstance(job, str) and type(attempt) is type(fence) is int:
                    found.append((job, attempt, fence))
    return found
