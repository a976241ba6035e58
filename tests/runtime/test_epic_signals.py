"""The signals that ask an EPIC run to end: each counts, wherever it comes from."""

from __future__ import annotations

import signal

import pytest
import trio

from forge_actors.runtime.epic_run import SIGNALS, counted_signals


async def test_each_signal_counts_and_what_was_there_comes_back() -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    counted: list[int] = []
    with counted_signals(lambda: counted.append(len(counted))):
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.raise_signal(number)
        while len(counted) < 4:
            await trio.lowlevel.checkpoint()
    assert [signal.getsignal(each) for each in SIGNALS] == before
    with pytest.raises(ValueError, match="a bug"), counted_signals(lambda: None):
        raise ValueError("a bug")
    assert [signal.getsignal(each) for each in SIGNALS] == before


async def test_a_run_in_another_thread_leaves_signals_alone() -> None:
    before = [signal.getsignal(each) for each in SIGNALS]

    async def elsewhere() -> list[object]:
        with counted_signals(lambda: None):
            return [signal.getsignal(each) for each in SIGNALS]

    assert await trio.to_thread.run_sync(trio.run, elsewhere) == before
