"""An actor that fails with an end in hand keeps its tokens until that is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.testing.launcher import FakeLauncher
from tests.actors import kit
from tests.actors.kit import limits, order_of, world
from tests.actors.repository_kit import memory

if TYPE_CHECKING:
    from typing import Any

    from forge_actors.domain.launch import LaunchOrder

pytestmark = pytest.mark.mock_clock


async def test_an_exit_in_hand_when_the_actor_fails_leaks_no_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world(launcher=FakeLauncher(durable=True)) as made:
        await made.submit(made.job("a"))
        real = made.store.spec

        def once(job: str) -> object:
            monkeypatch.setattr(made.store, "spec", real)
            raise OSError("the disk gave nothing")

        monkeypatch.setattr(made.store, "spec", once)
        # What was lost asks for the budgets of its job: there the actor fails.
        made.launcher.go_down()
        await trio.testing.wait_all_tasks_blocked()
        assert made.states()["a"] == "human_attention_required"
        use = (await made.survey()).tokens["workers"]
        assert (use.used, use.jobs) == (0, ())


async def test_a_dispatch_that_was_never_launched_counts_until_it_is_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world(
        repos=("repo", "other"),
        launcher=FakeLauncher(durable=True),
        limits=limits(repositories=1),
    ) as made:
        asked: list[str] = []

        def second_fails(job: str, **fields: Any) -> LaunchOrder:
            asked.append(job)
            if len(asked) == 2:
                raise OSError("the disk gave nothing")
            return order_of(job, **fields)

        # The dispatch of one is not durable yet when the order of the next fails.
        monkeypatch.setattr(kit, "order_of", second_fails)
        await made.submit(
            made.job("a"), made.job("c", kind="check"), made.job("b", repo="other")
        )
        active: list[str] = []
        for event in memory(made).durable.events:
            if event.kind == "job_dispatched":
                active.append(str(event.repo))
            elif event.kind in ("job_queued", "job_succeeded") and event.data.get(
                "attempt"
            ):
                active.remove(str(event.repo))
            assert len(set(active)) <= 1
        assert active == ["other"]
