"""The safety pass over very many repositories looks at some of them at a time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.actors import repository, supervisor
from forge_actors.actors.repository_messages import Message, Pass
from forge_actors.actors.supervisor import BUSY_PASS_SECONDS
from tests.actors.kit import limits, world

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.mock_clock

WAITING = tuple(f"w{number}" for number in range(6))


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The repositories in the order in which a pass came to them."""
    seen: list[str] = []
    handle = repository._Repository.handle

    def watched(self: repository._Repository, message: Message) -> None:
        if isinstance(message, Pass):
            seen.append(self._repo)
        handle(self, message)

    monkeypatch.setattr(repository._Repository, "handle", watched)
    return seen


async def test_each_has_its_turn_and_what_runs_is_looked_at_every_time(
    tmp_path: Path, looked_at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "PASS_REPOSITORIES", 2)
    repos = ("busy", *WAITING)
    async with world(tmp_path, repos=repos, limits=limits(workers=1)) as made:
        await made.submit(made.job("runs", "busy"))
        await made.submit(*(made.job(f"j{repo}", repo) for repo in WAITING))
        assert made.running == ["runs"]
        await trio.sleep(BUSY_PASS_SECONDS + 1)
        looked_at.clear()
        await trio.sleep(3 * BUSY_PASS_SECONDS)
        assert Counter(looked_at) == {"busy": 3, **dict.fromkeys(WAITING, 1)}
        await made.finish("runs")
        await trio.sleep(BUSY_PASS_SECONDS)
        assert len(made.running) == 1
