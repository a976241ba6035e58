"""Checkouts without git and without files, looked at and watched by fakes.

    checkouts = FakeCheckouts()
    sampler, watch = FakeSampler(checkouts), FakeWatch(checkouts)
    checkouts.change("repo")  # both see it

They keep the contract of `looking_contract.py`, which the real ones keep too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.git_status import GitStatus, Sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.looking import Unwatchable
    from forge_actors.domain.repositories import Repository

CLEAN = GitStatus("main", "a" * 40)


class FakeCheckouts:
    """The status of each checkout, as a test has made it."""

    def __init__(self) -> None:
        self.status: dict[str, GitStatus] = {}
        #: Repositories where git hangs, and those that are gone.
        self.hangs: set[str] = set()
        self.gone: set[str] = set()
        #: Told of each change.
        self.watchers: list[Callable[[str], None]] = []

    def change(self, repo: str) -> None:
        """A new file."""
        held = self.status.get(repo, CLEAN)
        self.status[repo] = structs.replace(held, untracked=held.untracked + 1)
        for tell in self.watchers:
            tell(repo)


class FakeSampler:
    """The port `StatusSampler`. `begun` names what was sampled, in order."""

    def __init__(self, checkouts: FakeCheckouts) -> None:
        self._checkouts = checkouts
        self.begun: list[str] = []
        #: Seconds, and CPU seconds, that a sample takes.
        self.takes, self.cost = 0.01, 0.005
        #: How many run now, and did at most.
        self.running = self.most = 0

    async def sample(self, repository: Repository, limit: float) -> Sample:
        repo = repository.id
        self.begun.append(repo)
        status = self._checkouts.status.get(repo, CLEAN)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if repo in self._checkouts.hangs:
                await trio.sleep(limit)
                return Sample(self.cost, problem=f"git took longer than {limit:g} s")
            await trio.sleep(self.takes)
        finally:
            self.running -= 1
        if repo in self._checkouts.gone:
            return Sample(self.cost, problem=f"its folder is gone: {repository.path}")
        return Sample(self.cost, status)


class FakeWatch:
    """The port `FileWatch`. It watches everything, until `refusal` is set."""

    def __init__(self, checkouts: FakeCheckouts) -> None:
        self.watched: set[str] = set()
        self.refusal: Unwatchable | None = None
        self._changed: set[str] = set()
        self._some = trio.Event()
        checkouts.watchers.append(self._tell)

    async def watch(self, repository: Repository) -> Unwatchable | None:
        await trio.lowlevel.checkpoint()
        if self.refusal is None:
            self.watched.add(repository.id)
        return self.refusal

    def forget(self, repo: str) -> None:
        self.watched.discard(repo)
        self._changed.discard(repo)

    async def changed(self) -> set[str]:
        while not self._changed:
            self._some = trio.Event()
            await self._some.wait()
        found, self._changed = self._changed, set()
        return found

    def close(self) -> None:
        self.watched.clear()

    def _tell(self, repo: str) -> None:
        if repo in self.watched:
            self._changed.add(repo)
            self._some.set()
