"""Baselines: how far that is now which a schedule is to wait for.

It is seen before a schedule is made or goes on, so that whatever happens after the
answer counts, and nothing that was there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.causes import AllOf, Branch, Clean, Ended, Files
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


Heads = tuple[dict[str, str], str | None]


class Baseline:
    """Called with the definitions of schedules; each repository is read once."""

    def __init__(
        self,
        store: EndsStore,
        repository: Callable[[str], Repository | None],
        commits: CommitReader,
    ) -> None:
        self._store = store
        self._repository = repository
        self._commits = commits

    async def __call__(self, *definitions: Definition) -> dict[str, str | None]:
        """How far it is seen by name, as `Progress.seen` has it; None: nothing is to be
        seen, or it is not known.

        Raises:
            Refused: it cannot be seen. InvalidInput: it means too much.
        """
        heads: dict[str, Heads] = {}
        for each in definitions:
            trigger = each.trigger
            cause = trigger.cause if isinstance(trigger, On) else None
            if isinstance(cause, Branch | Files) and each.repo not in heads:
                heads[each.repo] = await self._read(each.repo)
        return {each.name: self._seen(each, heads) for each in definitions}

    def _seen(self, definition: Definition, heads: dict[str, Heads]) -> str | None:
        trigger = definition.trigger
        match trigger.cause if isinstance(trigger, On) else None:
            case Ended() | AllOf():
                return written(EndsSeen(self._store.last_event()))
            case Clean():
                seen, _ = see_look(None, self._store.look(definition.repo), 0.0)
                return None if seen is None else written(seen)
            case Branch() as cause:
                branches, _ = heads[definition.repo]
                found = matching(cause, branches)
                if len(found) > MAX_BRANCHES:
                    raise InvalidInput(
                        "on",
                        f"{cause.pattern} means {len(found)} branches, and"
                        f" {MAX_BRANCHES} are the most",
                    )
                return written(RefsSeen(found))
            case Files():
                _, head = heads[definition.repo]
                return written(CommitSeen(head))
            case _:
                return None  # of issues the first question sees it

    async def _read(self, repo: str) -> Heads:
        repository = self._repository(repo)
        if repository is None:
            return {}, None  # whoever makes its schedule is refused
        try:
            return await self._commits.heads(repository)
        except WorktreeFailed as error:
            raise Refused(f"{repository.name}: {error}") from None
