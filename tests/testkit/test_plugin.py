"""The fixtures for pytest: with pytest-trio and without, and at no cost if not used."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

#: A project of somebody else, without any plugin besides.
PLAIN = """
import sys


def test_nothing_was_loaded(request):
    assert "forge_actors.testing.pytest_plugin" in sys.modules
    assert not {"trio", "msgspec", "apsw", "psutil"} & set(sys.modules)


def test_a_job(forge_run, forge_runtime, forge_repository, forge_no_leaks):
    async def main():
        async with forge_no_leaks(), forge_runtime() as runtime:
            job = await runtime.submit(forge_repository("app"), ["make"])
            return await job.wait()

    assert forge_run(main).state == "succeeded"


def test_what_it_stands_on(forge_run, forge_in_memory, forge_repository):
    memory = forge_in_memory()

    async def main():
        async with memory.open() as runtime:
            await (await runtime.submit(forge_repository("app"), ["make"])).wait()

    forge_run(main)
    assert [order.argv for order in memory.launcher.orders] == [("make",)]


def test_servers(forge_run, forge_service, forge_github, tmp_path):
    from forge_actors.testing import GitHubWorld

    async def main():
        async with forge_service(tmp_path) as control, forge_github(GitHubWorld()) as s:
            return (await control.repositories()), s.base

    repositories, base = forge_run(main, mock_clock=False)
    assert repositories == []
    assert base.startswith("http://127.0.0.1:")
"""
WITH_TRIO = """
import pytest
import trio


@pytest.mark.trio
async def test_a_job(forge_runtime, forge_repository, autojump_clock):
    async def slow(job):
        await trio.sleep(600)

    async with forge_runtime(slow) as runtime:
        job = await runtime.submit(forge_repository("app"), ["make"])
        assert (await job.wait()).state == "succeeded"
    assert trio.current_time() >= 600
"""


def run_project(folder: Path, text: str, *options: str) -> str:
    folder.joinpath("test_project.py").write_text(text)
    folder.joinpath("pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    run = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_a_project_without_any_other_plugin(tmp_path: Path) -> None:
    told = run_project(tmp_path, PLAIN, "-p", "forge_actors.testing.pytest_plugin")
    assert "4 passed" in told


@pytest.mark.skipif(
    importlib.util.find_spec("pytest_trio") is None, reason="pytest-trio is not here"
)
def test_a_project_with_pytest_trio(tmp_path: Path) -> None:
    plugins = ("-p", "forge_actors.testing.pytest_plugin", "-p", "pytest_trio.plugin")
    assert "1 passed" in run_project(tmp_path, WITH_TRIO, *plugins)


def test_it_is_there_wherever_the_package_is_installed(
    pytestconfig: pytest.Config,
) -> None:
    """By its entry point: nobody names it here."""
    plugin: Any = pytestconfig.pluginmanager.get_plugin("forge_actors")
    assert plugin is not None
    assert plugin.__name__ == "forge_actors.testing.pytest_plugin"
