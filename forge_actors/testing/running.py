"""Running an async test where no plugin does it, on a mock clock or a real one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import trio
import trio.testing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


def run(test: Callable[..., Awaitable[T]], *args: Any, mock_clock: bool = True) -> T:
    """Run an async function to its end.

    On the mock clock time passes at once whenever nothing else is to be done, so hours
    cost nothing. It knows nothing of threads, processes and sockets: with a real
    runtime use the real clock.
    """
    clock = trio.testing.MockClock(autojump_threshold=0) if mock_clock else None
    return trio.run(test, *args, clock=clock, strict_exception_groups=True)
