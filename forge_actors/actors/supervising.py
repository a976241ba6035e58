"""A supervisor for actors of your own: they live as long as a block.

    async with open_supervisor() as supervisor:
        counter = await supervisor.start(partial(count, store), name="the counter")
        print(await counter.ask(Add))

An actor that fails begins anew. When one that the others need has failed too often the
failure travels up: the others are ended, and it is raised where the block is.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import trio

from forge_actors.actors.keeper import Keeper
from forge_actors.domain.errors import RestartIntensityReached

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from forge_actors.actors.keeper import Actor
    from forge_actors.domain.restarts import Restart, RestartPolicy

M = TypeVar("M")


class Supervisor:
    """Starts actors and has them begin anew; made by `open_supervisor`."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._keepers: list[Keeper[Any]] = []

    async def start(
        self,
        actor: Actor[M],
        *,
        name: str,
        restart: Restart = "transient",
        policy: RestartPolicy | None = None,
        essential: bool = True,
    ) -> Keeper[M]:
        """Have an actor run from now on; it has started when this returns.

        `restart`: whether it begins anew whenever it has ended (`permanent`), only when
        it has failed (`transient`), or never (`temporary`); `policy`: how often it may,
        5 times within 60 s. One that is not `essential` is given up alone, and its
        keeper says why.

        Raises:
            Exception: its own, if it fails before it has started. It is not kept then.
        """
        keeper = Keeper(name, actor, restart=restart, policy=policy)
        try:
            await self._nursery.start(self._keep, keeper, essential)
        except ExceptionGroup as group:
            raise _single(group) from None
        return keeper

    async def _keep(
        self, keeper: Keeper[Any], essential: bool, *, task_status: Any
    ) -> None:
        self._keepers.append(keeper)
        try:
            await keeper.run(task_status=task_status)
        finally:
            self._keepers.remove(keeper)
        if essential and keeper.given_up is not None:
            raise RestartIntensityReached(
                f"{keeper.name} was given up: {keeper.given_up}"
            ) from keeper.error

    async def stop(self) -> None:
        """Have every actor serve what is queued and end, the last one started first."""
        while self._keepers:
            await self._keepers[-1].stop()


@asynccontextmanager
async def open_supervisor() -> AsyncGenerator[Supervisor, None]:
    """A supervisor for the length of the block.

    At its end the actors are stopped, the last one started first. If the block fails or
    is cancelled they are killed, and its exception reaches the caller as it is.

    Raises:
        RestartIntensityReached: an essential actor was given up; the block is cancelled
            then, and the failure is its cause.
    """
    host_error: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            supervisor = Supervisor(nursery)
            try:
                yield supervisor
                await supervisor.stop()
            except BaseException as error:  # noqa: BLE001 - raised again below
                # Leaving the nursery with it would wrap it in a group.
                host_error = error
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise _single(group) from _single(group).__cause__
    if host_error is not None:
        raise host_error


def _single(error: BaseException) -> BaseException:
    """What is in a group of one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
