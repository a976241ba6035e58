"""Fixtures for pytest, there wherever Forge Actors is installed.

All of them are plain values and functions, so that they can be used with pytest-trio,
with the plugin of anyio, or with neither:

    def test_it(forge_run, forge_runtime, tmp_path):
        async def main():
            async with forge_runtime() as runtime: ...
        forge_run(main)

    @pytest.mark.trio
    async def test_it(forge_runtime, autojump_clock):
        async with forge_runtime() as runtime: ...

What they give is loaded when a test asks for it: whoever has no such test pays for
nothing but this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def forge_run() -> Callable[..., Any]:
    """Runs an async function on a mock clock, see `testing.run`."""
    from forge_actors.testing import run

    return run


@pytest.fixture
def forge_runtime() -> Callable[..., Any]:
    """Opens an in-memory runtime, see `testing.open_memory_runtime`."""
    from forge_actors.testing import open_memory_runtime

    return open_memory_runtime


@pytest.fixture
def forge_in_memory(tmp_path: Path) -> Callable[..., Any]:
    """Makes what in-memory runtimes stand on, in the folder of the test; takes a
    script, see `testing.InMemory`."""
    from forge_actors.testing import InMemory

    def make(*args: Any) -> InMemory:
        return InMemory(tmp_path / "forge-home", *args)

    return make


@pytest.fixture
def forge_repository(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a folder that is a repository in memory, by its name."""
    from forge_actors.testing import make_repository

    return lambda name: make_repository(tmp_path / name)


@pytest.fixture
def forge_service() -> Callable[..., Any]:
    """Serves a `FakeControl` at a home, see `testing.fake_service`."""
    from forge_actors.testing import fake_service

    return fake_service


@pytest.fixture
def forge_github() -> Callable[..., Any]:
    """Serves a GitHub for tests on the loopback, see `testing.fake_github`."""
    from forge_actors.testing import fake_github

    return fake_github


@pytest.fixture
def forge_no_leaks() -> Callable[..., Any]:
    """Fails if something is left at the end of a block, see
    `testing.assert_no_leaks`."""
    from forge_actors.testing import assert_no_leaks

    return assert_no_leaks
