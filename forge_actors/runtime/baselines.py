"""Baselines: how far that is now which a schedule is to wait for.

It is seen before a schedule is made or goes on, so that whatever happens after the
answer counts, and nothing that was there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.causes import AllOf, Branch, Clean, Ended, Files, Issues
from forge_actors.domain.errors import InvalidInput, Refused, WorktreeFailed
from forge_actors.domain.sightings import (
    MAX_BRANCHES,
    CommitSeen,
    EndsSeen,
    RefsSeen,
    matching,
    see_look,
    written,
)
from forge_actors.domain.triggers import On

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors.lookout_messages import CommitReader, EndsStore
    from forge_actors.domain.repositories import Repository
    from forge_actors.domain.schedules import Definition


class Baseline:
    """Called with the definition of a schedule."""

    def __init__(
        self,
        store: EndsStore,
        repository: Callable[[str], Repository | None],
        commits: CommitReader,
    ) -> None:
        self._store = store
        self._repository = repository
        self._commits = commits

    async def __call__(self, definition: Definition) -> str | None:
        """How far it is seen, as `Progress.seen` has it; None: nothing is to be seen,
        or it is not known.

        Raises:
            Refused: it cannot be seen. InvalidInput: it means too much.
        """
        trigger = definition.trigger
        if not isinstance(trigger, On):
            return None
        match trigger.cause:
            case Ended() | AllOf():
                return written(EndsSeen(self._store.last_event()))
            case Clean():
                seen, _ = see_look(None, self._store.look(definition.repo), 0.0)
                return None if seen is None else written(seen)
            case Branch() as cause:
                heads, _ = await self._read(definition.repo)
                found = matching(cause, heads)
                if len(found) > MAX_BRANCHES:
                    raise InvalidInput(
                        "on",
                        f"{cause.pattern} means {len(found)} branches, and"
                        f" {MAX_BRANCHES} are the most",
                    )
                return written(RefsSeen(found))
            case Files():
                _, head = await self._read(definition.repo)
                return written(CommitSeen(head))
            case Issues():
                return None  # the first question sees it
        return None

    async def _read(self, repo: str) -> tuple[dict[str, str], str | None]:
        repository = self._repository(repo)
        if repository is None:
            return {}, None  # whoever makes its schedule is refused
        try:
            return await self._commits.heads(repository)
        except WorktreeFailed as error:
            raise Refused(f"{repository.name}: {error}") from None
