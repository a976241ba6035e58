"""What makes an actor fail over and over is set aside, and everything else goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.actors import supervisor
from forge_actors.actors.supervisor_messages import TakeBack
from forge_actors.domain.changes import TakenBack
from forge_actors.domain.errors import (
    RestartIntensityReached,
    SetAsideError,
    StoreDamaged,
)
from forge_actors.domain.events import Event
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.restarts import RestartPolicy
from forge_actors.testing.launcher import FakeLauncher
from tests.actors.kit import WRITE, limits, world

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.poison import Poison
    from tests.actors.kit import World

pytestmark = pytest.mark.mock_clock

POLICY = RestartPolicy(2, 60.0)


def poisoned(made: World) -> dict[str, Poison]:
    """What the store says was set aside of the repository `repo`."""
    aside: dict[str, Poison] = made.store.load("repo").poisoned
    return aside


async def fail_until_aside(made: World) -> None:
    """Make the actor of `repo` fail until the whole repository is set aside."""
    with pytest.raises(SetAsideError):  # noqa: PT012
        for _ in range(20):
            await made.crash()
    await trio.testing.wait_all_tasks_blocked()


async def take_back(made: World) -> None:
    event = Event("repository_taken_back", made.clock.now(), "repo")
    await made.store.save([TakenBack("repo", event)]).wait()
    made.mailbox.tell(TakeBack("repo"))
    await trio.testing.wait_all_tasks_blocked()


async def test_a_job_whose_order_cannot_be_made_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(tmp_path, restarts=POLICY, started=False) as made:
        make = made._context().make_order

        def broken(job: object) -> object:
            if job.id == "bad":  # type: ignore[attr-defined]
                raise ZeroDivisionError("no order for this one")
            return make(job)  # type: ignore[arg-type]

        real = made._context
        context = supervisor.Context(
            **{
                **{n: getattr(real(), n) for n in supervisor.Context.__struct_fields__},
                "make_order": broken,
            }
        )
        monkeypatch.setattr(made, "_context", lambda: context)
        async with trio.open_nursery() as nursery:
            await made.start(nursery)
            await made.submit(made.job("bad", claims=WRITE), made.job("good"))
            assert made.running == ["good"]
            assert list(poisoned(made)) == ["bad"]
            error = poisoned(made)["bad"].error
            assert error == "ZeroDivisionError: no order for this one"
            assert made.states()["bad"] == "queued"
            assert "job_set_aside" in made.events()
            # Its claims are free, as it never ran; its token too.
            await made.submit(made.job("next", claims=WRITE))
            assert set(made.running) == {"good", "next"}
            use = (await made.survey()).tokens["workers"]
            assert set(use.jobs) == {"good", "next"}
            await made.finish("good", "next")
            await made.stop()


async def test_a_row_that_cannot_be_read_is_set_aside(tmp_path: Path) -> None:
    async with world(tmp_path, started=False) as made:
        await made.save(made.job("bad"), made.job("good"))
        made.store._db.execute("UPDATE job SET spec = x'7b' WHERE id = 'bad'")
    async with world(tmp_path, restarts=POLICY) as made:
        assert made.running == ["good"]
        assert list(poisoned(made)) == ["bad"]
        await made.finish("good")
        await trio.sleep(100)
        assert (await made.survey()).awake == 0
    # The next start leaves it alone at once.
    async with world(tmp_path, restarts=RestartPolicy(0, 60.0)) as made:
        assert list(poisoned(made)) == ["bad"]
        await made.submit(made.job("more"))
        assert made.running == ["more"]
        made.store._db.execute(
            "UPDATE job SET spec = (SELECT spec FROM job WHERE id = 'more')"
        )
        await take_back(made)
        assert poisoned(made) == {}
        assert set(made.running) == {"bad", "more"}


async def test_a_row_of_a_job_that_may_run_sets_its_repository_aside(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, started=False) as made:
        await made.save(made.job("bad"), made.job("waits"))
        made.store._db.execute(
            "UPDATE job SET claims = '{', state = 'running', attempt = 1, fence = 1,"
            " dispatched_at = 1.0 WHERE id = 'bad'"
        )
    async with world(tmp_path, repos=("repo", "other"), restarts=POLICY) as made:
        # What it claims is not known, so nothing may run beside it.
        assert list(poisoned(made)) == [""]
        await made.submit(made.job("fine", "other"))
        assert made.running == ["fine"]


async def test_what_runs_of_a_job_that_was_set_aside_keeps_claims_and_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = FakeLauncher(durable=True)
    async with world(tmp_path, launcher=launcher, stop="detached") as made:
        await made.submit(made.job("bad", claims=WRITE), made.job("good"))
    real = Ledger.adopt

    def adopt(self: Ledger, job: object) -> None:
        if job.id == "bad":  # type: ignore[attr-defined]
            raise KeyError("bad")
        real(self, job)  # type: ignore[arg-type]

    monkeypatch.setattr(Ledger, "adopt", adopt)
    async with world(
        tmp_path, launcher=launcher, restarts=POLICY, limits=limits(workers=2)
    ) as made:
        assert list(poisoned(made)) == ["bad"]
        assert (await made.survey()).tokens["workers"].used == 2
        await made.submit(made.job("next", claims=WRITE), made.job("other"))
        assert made.running == ["bad", "good"]
        await made.finish("good")
        assert made.running == ["bad", "other"]
        # It ends, which frees its token; what it came to, nobody can record yet.
        await made.finish("bad")
        assert (await made.survey()).tokens["workers"].used == 1
        assert made.running == ["other"]
        monkeypatch.undo()
        await take_back(made)
        assert made.states()["bad"] == "succeeded"
        assert set(made.running) == {"next", "other"}


async def test_an_exit_that_nobody_can_decide_sets_its_job_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Ledger.finish

    def finish(self: Ledger, job: str, *rest: Any, **more: Any) -> Any:
        if job == "bad":
            raise IndexError("in the middle of it")
        return real(self, job, *rest, **more)

    monkeypatch.setattr(Ledger, "finish", finish)
    async with world(tmp_path, restarts=POLICY) as made:
        await made.submit(made.job("bad", claims=WRITE), made.job("good"))
        await made.finish("bad")
        assert list(poisoned(made)) == ["bad"]
        assert made.states()["bad"] in ("dispatched", "running")
        await made.submit(made.job("next", claims=WRITE), made.job("other"))
        assert set(made.running) == {"good", "other"}
        assert set((await made.survey()).tokens["workers"].jobs) == {"good", "other"}
        monkeypatch.undo()
        await take_back(made)
        assert made.states()["bad"] == "succeeded"
        assert set(made.running) == {"good", "other", "next"}


async def test_a_repository_that_fails_still_is_set_aside_and_others_go_on(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, repos=("repo", "other"), restarts=POLICY) as made:
        await made.submit(made.job("runs"), made.job("fine", "other"))
        await fail_until_aside(made)
        assert not made.ended.is_set()
        assert set(made.running) == {"runs", "fine"}
        [poison] = poisoned(made).values()
        assert poison.job == ""
        assert poison.error.startswith("TypeError: ")
        assert made.events().count("repository_set_aside") == 1
        # New jobs of it wait; what ran is watched to its end.
        await made.submit(made.job("waits"), made.job("more", "other"))
        assert set(made.running) == {"runs", "fine", "more"}
        assert set((await made.survey()).tokens["workers"].jobs) == set(made.running)
        await made.finish("runs")
        assert (await made.survey()).tokens["workers"].used == 2
        assert made.states()["runs"] == "running", "nobody could record its end"
        await take_back(made)
        assert made.states()["runs"] == "succeeded"
        assert set(made.running) == {"waits", "fine", "more"}


async def test_what_runs_of_a_repository_that_is_taken_back_has_an_owner_again(
    tmp_path: Path,
) -> None:
    async with world(tmp_path, restarts=POLICY) as made:
        await made.submit(made.job("a", claims=WRITE))
        await fail_until_aside(made)
        await take_back(made)
        assert made.running == ["a"]
        assert (await made.survey()).tokens["workers"].jobs == ("a",)
        assert await made.cancel("a")
        await trio.testing.wait_all_tasks_blocked()
        assert made.states() == {"a": "cancelled"}
        assert (await made.survey()).tokens["workers"].used == 0


@pytest.mark.parametrize("reason", ["shutdown", "detached"])
async def test_a_stop_ends_or_leaves_what_runs_of_what_was_set_aside(
    tmp_path: Path, reason: str
) -> None:
    launcher = FakeLauncher(durable=True)
    async with world(tmp_path, launcher=launcher, restarts=POLICY) as made:
        await made.submit(made.job("a"))
        await fail_until_aside(made)
        await made.stop(reason)  # type: ignore[arg-type]
        assert len(made.running) == (reason == "detached")
    async with world(tmp_path, launcher=launcher) as made:
        # A start tries again.
        assert poisoned(made) == {}
        if reason == "detached":
            assert made.running == ["a"]
        else:
            assert made.states() == {"a": "human_attention_required"}


async def test_failures_of_the_store_are_no_poison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*_: object) -> None:
        raise StoreDamaged

    with pytest.RaisesGroup(
        pytest.RaisesExc(RestartIntensityReached), flatten_subgroups=True
    ):
        async with world(tmp_path, restarts=POLICY) as made:
            monkeypatch.setattr(made.store, "load", damaged)
            made.mailbox.tell(supervisor.Submitted("repo", (made.job("a"),)))
            await trio.sleep_forever()


async def test_an_actor_that_comes_to_rest_is_trusted_again(tmp_path: Path) -> None:
    async with world(tmp_path, restarts=POLICY) as made:
        for _ in range(4):
            for _ in range(3):
                await made.crash()
            await trio.sleep(10)  # asleep again
            assert (await made.survey()).awake == 0
        assert poisoned(made) == {}
