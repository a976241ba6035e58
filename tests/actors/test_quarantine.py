"""Claims of what may still be alive, and leases of what was not heard of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.actors.repository_messages import LetGoOfLeft
from forge_actors.actors.signs import LEASE_SECONDS, PING_SECONDS
from forge_actors.domain.launch import ProcessIdentity, Receipt
from forge_actors.testing.launcher import FakeLauncher
from tests.actors.kit import WRITE, world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.actors.kit import World

pytestmark = pytest.mark.mock_clock

LEFT = tuple(ProcessIdentity("fake-boot", pid, 1) for pid in (4001, 4002))


async def lose(made: World, job: str) -> None:
    """The attempt of a job is lost, and two of its processes may live."""
    [attempt] = [each for each in made.launcher.running if each.order.job == job]
    made.launcher.undead.update(LEFT)
    made.launcher.go_down()
    made.launcher.come_back()
    assert attempt.receipt is not None
    attempt.receipt = structs.replace(attempt.receipt, remaining=LEFT)
    await trio.testing.wait_all_tasks_blocked()


async def test_claims_are_kept_until_what_may_be_alive_is_proven_gone(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a", claims=WRITE, replay="safe"))
        await made.submit(made.job("b", claims=WRITE))
        await made.submit(made.job("c"))
        await lose(made, "a")
        assert made.states()["a"] == "orphaned"
        # Its token goes to others, its claims to nobody.
        assert (await made.survey()).tokens["workers"].jobs == ()
        assert made.running == []
        await made.submit(made.job("d"))
        assert made.running == ["d"]
        await trio.sleep(40)
        waits = await made.explain("b")
        assert waits is not None
        assert waits.state == "waiting_for_workspace"
        assert waits.waiting is not None
        assert waits.waiting.holders == ("a",)
        assert "job a left: processes 4001, 4002, not proven gone for" in (
            waits.waiting.detail
        )
        made.launcher.undead.discard(LEFT[0])
        await trio.sleep(40)
        assert made.running == ["d"]
        made.launcher.undead.clear()
        await trio.sleep(40)
        assert set(made.running) == {"b", "d"}
        kinds = [kind for kind in made.events() if "quarantine" in kind]
        assert kinds == ["job_quarantined", "job_quarantine_ended"]


async def test_a_process_that_was_gone_once_is_not_looked_for_again(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a", claims=WRITE))
        await lose(made, "a")
        made.launcher.undead.discard(LEFT[0])
        await trio.sleep(31)
        # Its number is another process by now.
        made.launcher.undead = {LEFT[0]}
        await trio.sleep(31)
        await made.submit(made.job("b", claims=WRITE))
        assert made.running == ["b"]


async def test_a_person_frees_what_cannot_be_proven_gone(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a", claims=WRITE))
        await lose(made, "a")
        await made.submit(made.job("b", claims=WRITE))
        repository = await made.open("repo")
        assert not await repository.ask(lambda reply: LetGoOfLeft("b", reply))
        assert made.running == []
        assert await repository.ask(lambda reply: LetGoOfLeft("a", reply))
        await trio.testing.wait_all_tasks_blocked()
        assert made.running == ["b"]
        assert not await repository.ask(lambda reply: LetGoOfLeft("a", reply))
        told = made.store.events(0, 10_000)
    [ended] = [each for each in told if each.kind == "job_quarantine_ended"]
    assert ended.job == "a"
    assert ended.data["reason"] == "asked"
    assert ended.data["pids"] == [4001, 4002]
    async with world(tmp_path, started=False) as made:
        assert made.store.load("repo").quarantined == {}


async def test_claims_stay_kept_over_a_restart(tmp_path: Path) -> None:
    launcher = FakeLauncher(durable=True)
    async with world(tmp_path, launcher=launcher) as made:
        await made.submit(made.job("a", claims=WRITE))
        await lose(made, "a")
        await made.submit(made.job("b", claims=WRITE))
    async with world(tmp_path, launcher=launcher) as made:
        assert made.running == []
        launcher.undead.clear()
    async with world(tmp_path, launcher=launcher) as made:
        assert made.running == ["b"]  # a start looks at once
    async with world(tmp_path, launcher=launcher, started=False) as made:
        assert made.store.load("repo").quarantined == {}


async def test_a_repository_that_keeps_claims_does_not_fall_asleep(
    tmp_path: Path,
) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a", claims=WRITE))
        await lose(made, "a")
        await trio.sleep(100)
        assert (await made.survey()).awake == 1
        made.launcher.undead.clear()
        await trio.sleep(100)
        assert (await made.survey()).awake == 0


async def test_a_good_end_may_leave_something_too(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        await made.submit(made.job("a", claims=WRITE))
        [attempt] = made.launcher.running
        made.launcher.undead.update(LEFT)
        made.launcher.finish("a")
        assert isinstance(attempt.receipt, Receipt)
        attempt.receipt = structs.replace(attempt.receipt, remaining=LEFT)
        await trio.testing.wait_all_tasks_blocked()
        assert made.states() == {"a": "succeeded"}
        await made.submit(made.job("b", claims=WRITE))
        assert made.running == []


# Leases


async def test_a_pass_asks_for_a_sign_of_life_of_what_runs() -> None:
    async with world() as made:
        made.launcher.fall_silent()
        await trio.sleep(100)
        assert made.launcher.pings == [], "nothing runs"
        made.launcher.speak()
        await made.submit(made.job("a"))
        await trio.sleep(100)
        assert made.launcher.pings == [], "it was heard all the time"
        made.launcher.fall_silent()
        began = trio.current_time()
        await trio.sleep(3 * PING_SECONDS)
        assert 1 <= len(made.launcher.pings) <= 3
        assert made.launcher.pings[0] - began >= PING_SECONDS


async def test_leases_of_what_is_silent_are_unconfirmed_and_free_nothing() -> None:
    async with world() as made:
        await made.submit(made.job("a", claims=WRITE))
        await made.submit(made.job("b", claims=WRITE))
        assert (await made.survey()).silence is None
        made.launcher.fall_silent()
        await trio.sleep(LEASE_SECONDS - 1)
        assert (await made.survey()).silence is None
        await trio.sleep(2)
        silence = (await made.survey()).silence
        assert silence is not None
        assert silence == pytest.approx(LEASE_SECONDS + 1)
        await trio.sleep(10_000)
        assert made.running == ["a"]
        assert (await made.survey()).tokens["workers"].jobs == ("a",)
        made.launcher.speak()
        assert (await made.survey()).silence is None
        await made.finish("a")
        assert made.running == ["b"]


async def test_a_long_rest_before_a_job_is_no_silence() -> None:
    async with world() as made:
        made.launcher.fall_silent()
        await trio.sleep(1000)
        await made.submit(made.job("a"))
        assert (await made.survey()).silence is None
