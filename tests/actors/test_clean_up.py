"""The supervisor and the actor that it can do without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.actors import maintenance, supervisor
from forge_actors.actors.maintenance_context import Context
from forge_actors.actors.maintenance_messages import Clean
from forge_actors.actors.supervisor_messages import OpenMaintenance
from forge_actors.domain.cleaning import CleanRequest
from forge_actors.domain.errors import ActorStopped, MailboxClosed, Unavailable
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.maintenance import Policy
from forge_actors.testing.clean_up import FakeCleanUp
from forge_actors.testing.store import MemoryStore
from tests.actors.kit import World, world

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.maintenance import CleanResult

pytestmark = pytest.mark.mock_clock


def attend(
    made: World,
    *,
    tell: Callable[[str | None], None] = lambda _: None,
    **behave: str,
) -> FakeCleanUp:
    """Give the supervisor that is to be started a clean-up."""
    assert isinstance(made.store, MemoryStore)
    clean_up = FakeCleanUp(dict)
    context = Context(
        home="/home",
        store=made.store,
        clock=made.clock,
        clean_up=clean_up,
        policy=lambda: Policy(rules={"behave": behave}),
        claim=None,
        is_busy=lambda: False,
        tell=tell,
    )
    given = made._context
    made._context = lambda: supervisor.Context(  # type: ignore[method-assign]
        **{
            name: getattr(given(), name)
            for name in given().__struct_fields__
            if name != "maintenance"
        },
        maintenance=context,
    )
    return clean_up


async def clean(made: World) -> CleanResult:
    keeper = await made.mailbox.ask(OpenMaintenance)
    request = CleanRequest("/home", 0.0)
    result: CleanResult = await keeper.ask(lambda reply: Clean(request, reply))
    return result


async def test_it_cleans_when_asked_and_ends_with_the_runtime() -> None:
    async with world(started=False) as made, trio.open_nursery() as nursery:
        clean_up = attend(made)
        await made.start(nursery)
        assert (await clean(made)).error is None
        made.mailbox.tell(supervisor.Stop("shutdown"))
        await made.ended.wait()
        assert len(clean_up.orders) == 1


async def test_a_run_that_goes_on_ends_before_the_supervisor() -> None:
    async with world(started=False) as made, trio.open_nursery() as nursery:
        clean_up = attend(made, jobs="hang")
        await made.start(nursery)

        async def ask() -> None:
            assert (await clean(made)).error == "the runtime ends"

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        assert clean_up.running == 1
        made.mailbox.tell(supervisor.Stop("shutdown"))
        await made.ended.wait()
        assert clean_up.running == 0


async def test_without_one_nobody_can_ask() -> None:
    async with world() as made:
        with pytest.raises(Unavailable, match="does not run"):
            await clean(made)


def broken(times: int) -> Callable[..., Awaitable[None]]:
    """The actor, which fails so often at its start."""
    real, left = maintenance.run, [times]

    async def run(context: Any, *, task_status: Any) -> None:
        left[0] -= 1
        if left[0] >= 0:
            raise RuntimeError("a bug")
        await real(context, task_status=task_status)

    return run


async def test_one_that_fails_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "run", broken(3))
    async with world(started=False) as made, trio.open_nursery() as nursery:
        attend(made)
        await made.start(nursery)
        await trio.testing.wait_all_tasks_blocked()
        assert (await clean(made)).error is None
        made.mailbox.tell(supervisor.Stop("shutdown"))


async def test_one_that_fails_for_good_harms_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(maintenance, "run", broken(1000))
    told: list[str | None] = []
    async with world(started=False) as made, trio.open_nursery() as nursery:
        attend(made, tell=told.append)
        await made.start(nursery)
        await trio.testing.wait_all_tasks_blocked()
        assert told == ["RuntimeError: a bug"]
        with pytest.raises(Unavailable, match="was given up: RuntimeError: a bug"):
            await clean(made)
        await made.submit(made.job("a"))
        await made.finish("a")
        assert made.store.durable.jobs["a"].state == "succeeded"  # type: ignore[union-attr]
        made.mailbox.tell(supervisor.Stop("shutdown"))


async def test_one_that_may_not_write_any_more_is_let_go(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with world(started=False) as made, trio.open_nursery() as nursery:
        clean_up = attend(made)
        await made.start(nursery)
        await trio.testing.wait_all_tasks_blocked()
        assert isinstance(made.store, MemoryStore)
        other = MemoryStore(durable=made.store.durable)
        other.take_over("other", ProcessIdentity("b", 1, 1), "r", 1.0)
        # Whether it ends before it reads this or by it depends on whose turn it is.
        with pytest.raises((ActorStopped, MailboxClosed)):
            await clean(made)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Unavailable, match="does not run"):
            await clean(made)
        assert clean_up.orders == []
        assert caplog.records == []
        made.store.durable.owner = None
        made.mailbox.tell(supervisor.Stop("shutdown"))
