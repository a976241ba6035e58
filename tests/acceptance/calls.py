"""Calls of the command line at the same moment, and waiting for what happens."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tests.acceptance.service import finished, started

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.acceptance.service import Done, Entry, LiveService


def together(service: LiveService, calls: Sequence[Sequence[str]]) -> list[Done]:
    """Calls of the command line that are all begun before the first one has ended."""
    with contextlib.ExitStack() as stack:
        running = [
            stack.enter_context(started("--home", service.home, *words))
            for words in calls
        ]
        return [finished(process) for process in running]


def happenings(service: LiveService, job: str, kind: str) -> Iterator[Entry]:
    """Each time that this happens to the job, the first one first, as it comes."""
    for entry in service._entries(after=0, limit=1000, follow=1):
        if (entry.job, entry.kind) == (job, kind):
            yield entry
