"""What the tests of embedding share."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from tests.runtime.kit import (
    make_repository,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors import JobHandle, Runtime


_numbers = itertools.count()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "app")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary homes are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def lasting() -> str:
    """A sleeping time nobody else uses, so that a survivor can be told by it."""
    return f"{8711 + next(_numbers)}.{os.getpid():07d}41"


class HostError(Exception):
    pass


async def start_sleeping(runtime: Runtime, repo: Path, lasting: str) -> JobHandle:
    """A job with a child of its own that has certainly begun."""
    script = f"sleep {lasting} & echo ready; sleep {lasting}"
    job = await runtime.submit(
        repo, ["sh", "-c", script], read_only=True, max_attempts=100
    )
    async for event in runtime.events(after=0):
        if (event.kind, event.job) == ("job_running", job.id):
            return job
    raise AssertionError("events do not end")


async def end_with_error(runtime: Runtime) -> None:
    raise HostError("mine")


async def end_with_deadline(runtime: Runtime) -> None:
    with trio.fail_after(0.05):
        await trio.sleep_forever()


async def end_with_interrupt(runtime: Runtime) -> None:
    signal.raise_signal(signal.SIGINT)
    await trio.sleep_forever()


async def end_with_exit(runtime: Runtime) -> None:
    sys.exit(7)


ENDS: dict[str, tuple[Callable[[Runtime], Any], type[BaseException]]] = {
    "error": (end_with_error, HostError),
    "deadline": (end_with_deadline, trio.TooSlowError),
    "interrupt": (end_with_interrupt, KeyboardInterrupt),
    "exit": (end_with_exit, SystemExit),
}


async def give_up_after(turns: int, scope: trio.CancelScope) -> None:
    for _ in range(turns):
        await trio.lowlevel.checkpoint()
    scope.cancel()
