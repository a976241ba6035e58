"""Pauses: where nothing new starts because somebody asked for it.

The supervisor owns those of everything and of the providers, a repository's ledger its
own. A single job is held, or suspended while it runs: that is a fact of the job
(`Job.held_at`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.changes import Noted, PauseBegan, PauseEnded
from forge_actors.domain.events import Event
from forge_actors.domain.scopes import DRAIN, PROVIDER, Pause

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from forge_actors.domain.changes import Change


class PauseView(Struct, frozen=True):
    """A pause as readers see it; a repository's scope has its name."""

    scope: str
    since: str
    jobs: bool


class Pauses:
    """The pauses that somebody knows of, the widest first. At most one a scope."""

    def __init__(self, pauses: Iterable[Pause] = ()) -> None:
        self._by_scope: dict[str, Pause] = {}
        self.replace(pauses)

    def __bool__(self) -> bool:
        return bool(self._by_scope)

    def __iter__(self) -> Iterator[Pause]:
        return iter(self._by_scope.values())

    def get(self, scope: str) -> Pause | None:
        return self._by_scope.get(scope)

    def replace(self, pauses: Iterable[Pause]) -> None:
        """Forget all, and know these."""
        ordered = sorted(pauses, key=lambda pause: pause.scope)
        self._by_scope = {pause.scope: pause for pause in ordered}

    def begin(
        self, scope: str, now: float, *, jobs: bool, repo: str | None = None
    ) -> list[Change]:
        """Nothing changes if it is there already and suspends no more than before."""
        known = self._by_scope.get(scope)
        if known is not None and known.jobs >= jobs:
            return []
        pause = Pause(scope, now if known is None else known.since, jobs)
        self.replace((*self, pause))
        if scope == DRAIN:
            return [Noted(Event("drain_began", now))]
        data: dict[str, object] = {"scope": scope, "jobs": jobs}
        return [PauseBegan(pause, Event("paused", now, repo, data=data))]

    def end(
        self, scope: str, now: float, *, jobs: bool, repo: str | None = None
    ) -> list[Change]:
        """Nothing changes if there is none; `jobs` is what its event is to say."""
        if self._by_scope.pop(scope, None) is None:
            return []
        if scope == DRAIN:
            return [Noted(Event("drain_ended", now))]
        data: dict[str, object] = {"scope": scope, "jobs": jobs}
        return [PauseEnded(scope, Event("resumed", now, repo, data=data))]

    def covering(self, tokens: Iterable[str]) -> Pause | None:
        """What keeps a job with these tokens from starting."""
        return next((pause for pause in self if pause.covers(tokens)), None)

    def suspending(self, tokens: Iterable[str]) -> Pause | None:
        """What suspends a running job with these tokens."""
        return next((p for p in self if p.jobs and p.covers(tokens)), None)

    @property
    def everywhere(self) -> Pause | None:
        """The first one that holds for jobs with any tokens."""
        return self.covering(())

    @property
    def closed_tokens(self) -> frozenset[str]:
        """The tokens of the paused providers."""
        return frozenset(p.scope for p in self if p.scope.startswith(PROVIDER))
