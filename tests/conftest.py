"""Every async test runs in a trio.run of its own, within a limit or on a mock clock."""

from __future__ import annotations

import functools
import gc
import inspect
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
from hypothesis import settings

from tests.examples import examples

if TYPE_CHECKING:
    from collections.abc import Generator

TEST_SECONDS = 120

# A shell that starts the tests in the background tells them to ignore interrupts, and
# nohup to ignore that the terminal goes: what they start would ignore them too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# How long an example takes says more of the machine than of us.
settings.register_profile("untimed", deadline=None, max_examples=examples(100))
settings.load_profile("untimed")

# Settings of the developer's own service must not reach the tests, nor may git find
# the configuration of whoever runs them, nor anything a token of theirs.
_FOREIGN = ("FORGE_", "GIT_", "GH_", "GITHUB_")
for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
    del os.environ[name]
os.environ.update(
    GITHUB_API_URL="http://127.0.0.1:9",
    GIT_CONFIG_GLOBAL=os.devnull,
    GIT_CONFIG_NOSYSTEM="1",
    GIT_AUTHOR_NAME="Test",
    GIT_AUTHOR_EMAIL="test@example.invalid",
    GIT_COMMITTER_NAME="Test",
    GIT_COMMITTER_EMAIL="test@example.invalid",
)


# Nearly all that is made while the tests are collected stays to the end: the collector
# need not look through it, neither meanwhile nor later.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    function = pyfuncitem.obj
    hypothesis_handle = getattr(function, "hypothesis", None)
    target = hypothesis_handle.inner_test if hypothesis_handle else function
    if inspect.iscoroutinefunction(target):
        mock = pyfuncitem.get_closest_marker("mock_clock") is not None

        @functools.wraps(target)
        def run(*args: Any, **kwargs: Any) -> None:
            async def main() -> None:
                if mock:
                    await target(*args, **kwargs)
                    return
                with trio.fail_after(TEST_SECONDS):
                    await target(*args, **kwargs)

            clock = trio.testing.MockClock(autojump_threshold=0) if mock else None
            trio.run(main, clock=clock, strict_exception_groups=True)

        if hypothesis_handle:
            hypothesis_handle.inner_test = run
        else:
            pyfuncitem.obj = run
    return (yield)
