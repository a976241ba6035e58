"""What the tests of supervisor share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.actors import supervisor
from forge_actors.testing.launcher import FakeLauncher

if TYPE_CHECKING:
    from forge_actors.actors.mailbox import Inbox
    from forge_actors.domain.launch import LaunchOrder


class Watched(FakeLauncher):
    """Remembers the most that ever ran at once, by token and by repository."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.tokens: dict[str, tuple[str, ...]] = {}
        self.most: dict[str, int] = {}

    def launch(self, order: LaunchOrder, descriptors: Any = None) -> Any:
        attempt = super().launch(order, descriptors)
        counts: dict[str, int] = {}
        repos = set()
        for running in self.running:
            repos.add(running.order.repo)
            for token in self.tokens[running.order.job]:
                counts[token] = counts.get(token, 0) + 1
        counts["active_repositories"] = len(repos)
        for kind, count in counts.items():
            self.most[kind] = max(self.most.get(kind, 0), count)
        return attempt


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The moments of the safety passes."""
    made: list[float] = []
    original = supervisor._Supervisor._make_pass

    def count(self: supervisor._Supervisor) -> None:
        made.append(trio.current_time())
        original(self)

    monkeypatch.setattr(supervisor._Supervisor, "_make_pass", count)
    return made


@pytest.fixture
def wakes(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The moments in which the supervisor did anything at all."""
    made: list[float] = []
    original = supervisor._Supervisor.serve

    async def count(
        self: supervisor._Supervisor, inbox: Inbox[supervisor.Message]
    ) -> None:
        await original(self, inbox)
        made.append(trio.current_time())

    monkeypatch.setattr(supervisor._Supervisor, "serve", count)
    return made
