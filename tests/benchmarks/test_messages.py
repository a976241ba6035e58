"""Each message is counted once it was read; nothing here is timed."""

from __future__ import annotations

import pytest
import trio

from benchmarks import messages


def test_tells_and_asks_have_rates() -> None:
    for measure in (
        messages.tell_ours,
        messages.tell_bare,
        messages.tell_called,
        messages.ask_ours,
        messages.ask_bare,
    ):
        assert trio.run(measure, 200) > 0


def test_a_channel_that_loses_the_order_has_no_rate() -> None:
    async def seven() -> int:
        return 7

    with pytest.raises(BaseExceptionGroup) as caught:
        trio.run(messages.rate, 2, lambda _: None, seven)
    assert caught.group_contains(AssertionError, match="another order")
