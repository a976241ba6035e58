"""Examples that start processes, servers and agents of their own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors import open_runtime
from forge_actors.edges.agents import finding
from tests.example_programs.loading import EXAMPLES, program
from tests.runtime.kit import CALM, make_repository

if TYPE_CHECKING:
    from pathlib import Path


def test_the_web_application_runs_a_job(tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="the extra `gateway` is not here")
    from starlette.testclient import TestClient

    app = program("web.py").app
    repo = make_repository(tmp_path / "app")
    with TestClient(app, backend="trio") as client:
        argv = ["sh", "-c", "echo hello; exit 3"]
        made = client.post("/jobs", json={"repo": str(repo), "argv": argv})
        assert made.status_code == 201
        job = made.json()["id"]
        assert client.get(f"/jobs/{job}/output").text == "hello\n"
        shown = client.get(f"/jobs/{job}").json()
        assert (shown["state"], shown["exit"]) == ("failed", 3)
        assert client.get("/jobs/nowhere").status_code == 404
        wrong = client.post("/jobs", json={"repo": str(tmp_path), "argv": ["true"]})
        assert (wrong.status_code, wrong.json()["code"]) == (400, "INVALID_INPUT")


@pytest.mark.parametrize("name", ["embed.py", "campaign.py", "actor.py"])
def test_without_arguments_an_example_tells_what_it_wants(name: str) -> None:
    program = [sys.executable, str(EXAMPLES / name)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"python examples/{name} " in done.stderr
    assert "Traceback" not in done.stderr


async def test_an_agent_is_found_by_the_entry_point_of_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As an installer would leave it.
    site = tmp_path / "site"
    shutil.copytree(EXAMPLES / "parrot", site)
    about = site / "parrot_agent-1.0.dist-info"
    about.mkdir()
    about.joinpath("METADATA").write_text("Name: parrot-agent\nVersion: 1.0\n")
    about.joinpath("entry_points.txt").write_text(
        "[forge_actors.agents]\nparrot = parrot_agent:Parrot\n"
    )
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("FORGE_PARROT_EXECUTABLE", str(site / "parrot"))
    finding._entry_points.cache_clear()
    try:
        async with open_runtime(settings=CALM) as runtime:
            repo = make_repository(tmp_path / "app")
            job = await runtime.submit(
                repo, [], agent="parrot", prompt="hello", isolate=False
            )
            with trio.fail_after(60):
                view = await job.wait()
            assert view.state == "succeeded", view.error
            told = view.agent
            assert told is not None
            assert (told.session, told.text) == ("parrot-1", "hello hello")
    finally:
        finding._entry_points.cache_clear()


def test_the_ci_job_runs_in_a_repository_of_ones_own(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "app")
    folder = repo / "examples"
    folder.mkdir()
    file = folder / "ci.toml"
    whole = EXAMPLES.joinpath("ci.toml").read_text()
    file.write_text(whole.replace('TMPDIR = "/tmp"', f'TMPDIR = "{tmp_path}"'))
    argv = [sys.executable, "-m", "forge_actors", "run", "--plain", str(file)]
    run = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert (tmp_path / "package.tar").stat().st_size > 0
