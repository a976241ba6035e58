"""Waiting for jobs to end: any number of jobs, held as one wait, told by the store."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import Unavailable
from forge_actors.domain.jobs import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from forge_actors.domain.jobs import State
    from forge_actors.edges.sqlite.store import SqliteStore


class Endings:
    """Everybody who waits for the ends of jobs of one runtime."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._waits: set[trio.Event] = set()
        self._closed = False

    def ids(self, selectors: Sequence[str]) -> list[str]:
        """The ids that selectors mean; whole ids are looked up together.

        Raises:
            NotFound, Refused: one means no job, or several.
        """
        whole = self._states(selectors)
        return [
            selector if selector in whole else self._store.match(selector)
            for selector in selectors
        ]

    async def wait(self, ids: Iterable[str]) -> None:
        """Return when every job has ended.

        Raises:
            Unavailable: the runtime ended first.
        """
        states = self._states(list(ids))
        pending = {job for job, state in states.items() if state not in TERMINAL}
        if not pending:
            return
        done = trio.Event()
        notify = {job: partial(self._ended, pending, done, job) for job in pending}
        self._waits.add(done)
        try:
            # Nothing can end between the look and this: there is no pause in between.
            for job, tell in notify.items():
                self._store.ends.add(job, tell)
            if not self._closed:
                await done.wait()
            if pending:
                raise Unavailable("the runtime ended before the job did")
        finally:
            self._waits.discard(done)
            for job in pending:
                self._store.ends.forget(job, notify[job])

    def close(self) -> None:
        """The runtime ends: whoever waits for what will not happen learns so."""
        self._closed = True
        for done in self._waits:
            done.set()

    @staticmethod
    def _ended(pending: set[str], done: trio.Event, job: str, _: State) -> None:
        pending.discard(job)
        if not pending:
            done.set()

    def _states(self, ids: Sequence[str]) -> dict[str, State]:
        return dict(self._store.read("states_of", json.dumps(ids)))
