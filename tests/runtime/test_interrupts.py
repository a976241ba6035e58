"""An interrupt ends what runs in order, and only the second one is rude."""

from __future__ import annotations

import os
import signal

import pytest
import trio

from forge_actors.domain.errors import InvalidInput
from forge_actors.runtime.interrupts import until_interrupted


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


async def test_work_that_is_not_interrupted_returns_what_it_returns() -> None:
    async def work() -> int:
        await trio.lowlevel.checkpoint()
        return 3

    assert await until_interrupted(work) == 3


async def test_an_interrupt_cancels_and_raises_nowhere_else() -> None:
    ended = False

    async def work() -> None:
        nonlocal ended
        interrupt()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.lowlevel.checkpoint()
            ended = True

    with pytest.raises(KeyboardInterrupt):
        await until_interrupted(work)
    assert ended


async def test_the_second_interrupt_does_not_wait() -> None:
    async def work() -> None:
        interrupt()
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                interrupt()
                await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        await until_interrupted(work)


async def test_a_failure_is_raised_as_it_is() -> None:
    async def work() -> None:
        raise InvalidInput("file", "cannot be read")

    with pytest.raises(InvalidInput):
        await until_interrupted(work)
