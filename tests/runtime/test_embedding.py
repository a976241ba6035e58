"""A runtime in somebody else's program: it leaves nothing behind, however it ends."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors import (
    InvalidInput,
    Refused,
)
from forge_actors.actors import asked, supervisor
from forge_actors.domain.errors import ActorStopped, Refused
from tests.runtime.kit import (
    Leftovers,
    make_repository,
    processes_with,
    running,
)

if TYPE_CHECKING:
    pass

from tests.runtime.embedding_kit import (
    ENDS,
    HostError,
    give_up_after,
    home,  # noqa: F401 - a fixture
    lasting,  # noqa: F401 - a fixture
    repo,  # noqa: F401 - a fixture
    start_sleeping,
    temporary,  # noqa: F401 - a fixture
)

# A plain life


async def test_a_job_runs_and_says_how_it_ended(repo: Path) -> None:
    async with running(None) as runtime:
        job = await runtime.submit(repo, ["sh", "-c", "echo hello; exit 3"])
        view = await job.wait()
        assert (view.state, view.exit_code, view.signal) == ("failed", 3, None)
        assert view.error is not None
        assert view.error.code == "EXIT_NONZERO"
        chunk = await runtime.control.read_log(job.id, "stdout", 0, limit=100)
        assert chunk.data == b"hello\n"
        assert await job.show() == view
        assert "exit status 3" in await job.why()
        assert await job.wait() == view
        assert (await job.cancel()).state == "failed"


async def test_nothing_is_left_when_the_block_ends(repo: Path, lasting: str) -> None:
    before = Leftovers()
    async with running(None, limits={"workers": 1}) as runtime:
        await start_sleeping(runtime, repo, lasting)
        await runtime.submit(repo, ["true"])
    before.check()
    assert processes_with(lasting) == []


async def test_all_tokens_are_back_once_the_jobs_have_ended(repo: Path) -> None:
    async with running(None) as runtime:
        argvs = [["true"], ["false"], ["/no/such/program"], ["sleep", "600"]]
        jobs = [await runtime.submit(repo, argv, read_only=True) for argv in argvs]
        await jobs[-1].cancel()
        for job in jobs:
            await job.wait()
        while True:  # the tokens follow the exit within a few turns of the loop
            status: Any = await runtime.status()
            if not status["capacity"]["workers"]["used"]:
                break
        assert status["capacity"]["active_repositories"]["used"] == 0
        assert status["counts"] == {"succeeded": 1, "failed": 2, "cancelled": 1}


@pytest.mark.parametrize("how", ENDS)
async def test_nothing_is_left_when_the_block_fails(
    how: str, repo: Path, lasting: str, temporary: Path
) -> None:
    end, expected = ENDS[how]
    before = Leftovers()
    raised: list[BaseException] = []
    with pytest.raises(expected) as caught:  # noqa: PT012
        async with running(None, limits={"workers": 1}) as runtime:
            await start_sleeping(runtime, repo, lasting)
            await runtime.submit(repo, ["true"])
            try:
                await end(runtime)
            except BaseException as error:
                raised.append(error)
                raise
    assert caught.value is raised[0], "the host sees its own exception"
    before.check()
    assert processes_with(lasting) == []


async def test_nothing_is_left_when_the_host_is_cancelled(
    repo: Path, lasting: str, temporary: Path
) -> None:
    before = Leftovers()
    async with trio.open_nursery() as nursery:

        async def embedded() -> None:
            async with running(None, limits={"workers": 1}) as runtime:
                await start_sleeping(runtime, repo, lasting)
                await runtime.submit(repo, ["true"])
                nursery.cancel_scope.cancel()
                await trio.sleep_forever()

        nursery.start_soon(embedded)
    before.check()
    assert processes_with(lasting) == []
    assert list(temporary.iterdir()) == []


async def test_a_cancel_in_any_moment_leaves_nothing(
    repo: Path, lasting: str, temporary: Path
) -> None:
    """The host gives up after 1, 2, 3 ... turns of the loop, from the start on."""
    before = Leftovers()
    for turns in (*range(12), 20, 40, 80, 160, 320):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(give_up_after, turns, scope)
                async with running(None) as runtime:
                    argv = ["sh", "-c", f"sleep {lasting}; exit"]
                    await runtime.submit(repo, argv, read_only=True)
                    await trio.sleep_forever()
        assert scope.cancelled_caught, turns
        before.check()
        assert processes_with(lasting) == [], turns
        assert list(temporary.iterdir()) == [], turns


async def test_nothing_is_left_when_an_actor_fails(
    repo: Path, lasting: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Leftovers()
    with pytest.raises(ZeroDivisionError, match="a bug"):  # noqa: PT012
        async with running(None) as runtime:
            await start_sleeping(runtime, repo, lasting)

            def fail(*_: object) -> None:
                raise ZeroDivisionError("a bug")

            monkeypatch.setattr(supervisor._Supervisor, "_grant_round", fail)
            await runtime.submit(repo, ["true"], read_only=True)
            await trio.sleep_forever()
    before.check()
    assert processes_with(lasting) == []
    [kept] = temporary.iterdir()
    assert (kept / "store.sqlite").exists()


async def test_an_actor_that_keeps_failing_is_set_aside_and_nothing_else_is(
    repo: Path, tmp_path: Path, lasting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other")
    before = Leftovers()
    async with running(None) as runtime:
        job = await start_sleeping(runtime, repo, lasting)

        def fail(*_: object) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as broken:
            broken.setattr(asked.Asked, "cancel", fail)
            while not (await runtime.status())["poisoned"]:
                with suppress(ActorStopped, Refused):
                    await job.cancel()
        assert "ZeroDivisionError" in await job.why()
        assert (await (await runtime.submit(other, ["true"])).wait()).exit_code == 0
        assert (await job.show()).state == "running"
        with pytest.raises(Refused, match="set aside"):
            await job.cancel()
        await runtime.control.enable_repository("app", enabled=True)
        assert (await runtime.status())["poisoned"] == []
        await job.cancel()
        assert (await job.wait()).state == "cancelled"
    before.check()
    assert processes_with(lasting) == []


async def test_one_failing_actor_ends_no_other_repository(
    repo: Path, tmp_path: Path, lasting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_repository(tmp_path / "other")
    async with running(None) as runtime:
        job = await start_sleeping(runtime, repo, lasting)

        def fail(*_: object) -> None:
            raise ZeroDivisionError

        with monkeypatch.context() as broken:
            broken.setattr(asked.Asked, "cancel", fail)
            with pytest.raises(ActorStopped):
                await job.cancel()
        assert (await (await runtime.submit(other, ["true"])).wait()).exit_code == 0
        view = await job.show()
        assert (view.state, view.attempt) == ("running", 1)
        assert (await job.cancel()).state in ("running", "cancelled")
        assert (await job.wait()).state == "cancelled"


async def test_an_interrupt_outside_of_the_block_is_the_hosts(
    repo: Path, lasting: str
) -> None:
    before = Leftovers()
    with pytest.RaisesGroup(KeyboardInterrupt):
        async with trio.open_nursery() as nursery:

            async def embedded() -> None:
                async with running(None) as runtime:
                    await start_sleeping(runtime, repo, lasting)
                    event.set()
                    await trio.sleep_forever()

            event = trio.Event()
            nursery.start_soon(embedded)
            await event.wait()
            signal.raise_signal(signal.SIGINT)
    before.check()
    assert processes_with(lasting) == []


# The home


async def test_a_private_home_is_removed_when_all_went_well(
    repo: Path, temporary: Path
) -> None:
    async with running(None) as runtime:
        assert runtime.home.parent == temporary
        assert runtime.home.stat().st_mode & 0o777 == 0o700
        job = await runtime.submit(repo, ["false"])
        assert (await job.wait()).state == "failed"
    assert list(temporary.iterdir()) == []


async def test_the_home_of_a_failed_block_is_kept_and_named(
    repo: Path, temporary: Path
) -> None:
    with pytest.raises(HostError) as caught:  # noqa: PT012
        async with running(None) as runtime:
            job = await runtime.submit(repo, ["sh", "-c", "echo evidence"])
            await job.wait()
            raise HostError
    [kept] = temporary.iterdir()
    assert caught.value.__notes__ == [f"the home of the failed run is kept: {kept}"]
    log = kept / "logs" / f"{job.id}.1.stdout"
    assert log.read_bytes().endswith(b"evidence\n")


async def test_a_home_that_was_given_is_kept_and_not_named(
    repo: Path, home: Path
) -> None:
    with pytest.raises(HostError) as caught:  # noqa: PT012
        async with running(home) as runtime:
            assert runtime.home == home
            raise HostError
    assert not hasattr(caught.value, "__notes__")
    async with running(home):
        pass
    assert (home / "store.sqlite").exists()
    assert home.stat().st_mode & 0o777 == 0o700


async def test_a_home_has_one_owner(home: Path) -> None:
    async with running(home):
        before = Leftovers()
        with pytest.raises(Refused, match=f"pid {os.getpid()}.*forge-actors stop"):
            async with running(home):
                raise AssertionError("two owners")
        before.check()
        link = home.with_name("link")
        link.symlink_to(home)
        with pytest.raises(Refused):
            async with running(link):
                raise AssertionError("two owners")
    async with running(home):
        pass


async def test_a_home_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=r"home: .*file"):
        async with running(tmp_path / "file"):
            pass
