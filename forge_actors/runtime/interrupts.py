"""An interrupt at the terminal, as an orderly end."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, TypeVar

import trio

from forge_actors.runtime.groups import only_failure

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


async def until_interrupted(work: Callable[[], Awaitable[T]]) -> T:
    """What `work` returns, unless an interrupt comes first: then it is cancelled.

    Trio alone raises KeyboardInterrupt in whatever task runs just then, which may be
    an actor in the middle of a move. The second interrupt still does that: whoever
    presses the keys again does not want to wait.

    Raises:
        KeyboardInterrupt: it was interrupted, and has ended.
    """
    results: list[T] = []
    failures: list[Exception] = []
    scope = trio.CancelScope()
    try:
        async with trio.open_nursery() as nursery:
            await nursery.start(_cancel_when_interrupted, scope)
            try:
                with scope:
                    results.append(await work())
            except Exception as error:  # noqa: BLE001 - raised again below, as it is
                failures.append(error)
            nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise only_failure(group) from None
    if failures:
        raise failures[0]
    if not results:
        raise KeyboardInterrupt
    return results[0]


async def _cancel_when_interrupted(
    scope: trio.CancelScope, *, task_status: trio.TaskStatus[None]
) -> None:
    with trio.open_signal_receiver(signal.SIGINT) as signals:
        task_status.started()
        await anext(signals)
    scope.cancel()
