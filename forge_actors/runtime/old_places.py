"""Old places: where what ended jobs worked in is now, if their repository moved since.

Jobs that have not ended follow their repository when it moves; the records of the
others stay what they were. So whoever does one again has to follow the moves.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import convert, structs

from forge_actors.domain.relocation import Relocation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.repositories import Repository
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.retries import Old


class OldPlaces:
    """Knows the moves of repositories; reads of each when it is first asked."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        #: When, and from where to where, by repository.
        self._moves: dict[str, Sequence[tuple[float, Relocation]]] = {}

    def followed(self, old: Old, repo: Repository) -> Old:
        """The job with its folder and its claims where they are now."""
        if os.path.isdir(old.spec.cwd) or not os.path.isdir(repo.path):
            return old
        [row] = self._store.read("view_job", old.job.id)
        ended: float = row[21]
        job, spec = old.job, old.spec
        for at, moved in self._of(repo.id):
            if at >= ended:
                job = structs.replace(job, claims=moved.claims(job.claims))
                spec = moved.spec(spec)
        return old._replace(job=job, spec=spec)

    def _of(self, repo: str) -> Sequence[tuple[float, Relocation]]:
        if repo not in self._moves:
            wanted = {"kind": ["repository_moved"], "repo": [repo]}
            events = self._store.find_events(0, self._store.committed.value, wanted)
            self._moves[repo] = [
                (event.at, Relocation(*convert(event.data["moved"], tuple[str, str])))
                for event in events
                if "moved" in event.data
            ]
        return self._moves[repo]
