"""For tests of programs that use Forge Actors (`design/testing-kit.md`).

The names below are public and are loaded on first use. The other modules of this
package are what our own tests use: fakes, the contract checks that they and the real
edges keep, and the simulation; they may change with any version.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.testing.agents import FakeAgent as FakeAgent
    from forge_actors.testing.agents import install as install
    from forge_actors.testing.clock import FakeClock as FakeClock
    from forge_actors.testing.control import FakeControl as FakeControl
    from forge_actors.testing.folders import make_repository as make_repository
    from forge_actors.testing.github import GitHubWorld as GitHubWorld
    from forge_actors.testing.github import fake_github as fake_github
    from forge_actors.testing.launcher import Outcome as Outcome
    from forge_actors.testing.leaks import Leaked as Leaked
    from forge_actors.testing.leaks import assert_no_leaks as assert_no_leaks
    from forge_actors.testing.memory import InMemory as InMemory
    from forge_actors.testing.memory import open_memory_runtime as open_memory_runtime
    from forge_actors.testing.running import run as run
    from forge_actors.testing.scripted import ScriptedJob as ScriptedJob
    from forge_actors.testing.scripted_agent import ScriptedAgent as ScriptedAgent
    from forge_actors.testing.service import fake_service as fake_service
    from forge_actors.testing.simulation import Simulation as Simulation

_HOMES = {
    "FakeAgent": "forge_actors.testing.agents",
    "install": "forge_actors.testing.agents",
    "FakeClock": "forge_actors.testing.clock",
    "FakeControl": "forge_actors.testing.control",
    "GitHubWorld": "forge_actors.testing.github",
    "fake_github": "forge_actors.testing.github",
    "make_repository": "forge_actors.testing.folders",
    "Outcome": "forge_actors.testing.launcher",
    "Leaked": "forge_actors.testing.leaks",
    "assert_no_leaks": "forge_actors.testing.leaks",
    "InMemory": "forge_actors.testing.memory",
    "open_memory_runtime": "forge_actors.testing.memory",
    "run": "forge_actors.testing.running",
    "ScriptedJob": "forge_actors.testing.scripted",
    "ScriptedAgent": "forge_actors.testing.scripted_agent",
    "fake_service": "forge_actors.testing.service",
    "Simulation": "forge_actors.testing.simulation",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - the table is the one list of public names


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)
