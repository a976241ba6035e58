"""Once a supervisor has been told why it stops, nothing more is dispatched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.actors.supervisor_messages import Stop
from forge_actors.domain.events import Event
from forge_actors.testing.launcher import FakeLauncher
from tests.actors.kit import limits, world

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.mock_clock

SEEN = "release_superseded"
KINDS = (
    "SELECT json_extract(value, '$.kind') FROM history,"
    " json_each(history.events) ORDER BY first, key"
)


@pytest.mark.parametrize("again", range(16))
@pytest.mark.parametrize("turns", range(1, 6))
async def test_nothing_is_dispatched_after_the_reason_of_a_stop(
    tmp_path: Path, turns: int, again: int
) -> None:
    """Wherever the grant of the next job is when the stop comes.

    It is on its way after three turns; whose task runs first is then left to chance.
    """
    launcher = FakeLauncher(durable=True)
    async with world(
        tmp_path, launcher=launcher, limits=limits(workers=1), stop="detached"
    ) as made:
        await made.submit(*(made.job(f"a{number}") for number in range(3)))
        launcher.finish("a0")
        for _ in range(turns):
            await trio.lowlevel.checkpoint()
        made.mailbox.tell(Stop("detached", Event(SEEN, made.clock.now())))
        await made.ended.wait()
        made.store.commit()
        kinds = [kind for (kind,) in made.store.reader.execute(KINDS)]
        assert kinds.count(SEEN) == 1
        assert "job_dispatched" not in kinds[kinds.index(SEEN) :]
        assert len(made.launched) <= kinds.count("job_dispatched")
