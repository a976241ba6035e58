"""Help, start-up, and a service in the background."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.cli import main as program
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = {"trio", "anyio", "msgspec", "mcp", "rich", "apsw", "http.client", "asyncio"}
PROGRAM = [sys.executable, "-m", "forge_actors"]


def test_a_service_that_is_stopped_while_it_starts_is_no_success(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "true")  # in place of the service
    assert program.main(["serve", "--detach", "--home", str(tmp_path)]) == 1
    assert "told to stop before it was ready" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_every_verb(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert program.main(words) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {verb} " in out for verb in program.VERBS)


def test_help_groups_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    program.main([])
    lines = capsys.readouterr().out.splitlines()
    verbs = [line.split()[0] for line in lines if line.split()[:1] and line[0] == " "]
    assert sorted(set(verbs) & set(program.VERBS)) == sorted(program.VERBS)
    assert "steering jobs:" in lines
    assert "others:" not in lines
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("words", ["help wait", "help repo add", "wait -h"])
def test_help_of_a_verb_has_two_ways(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        program.main(words.split())
    assert left.value.code == 0
    wanted = words.replace("help ", "").removesuffix(" -h")
    assert capsys.readouterr().out.startswith(f"usage: forge-actors {wanted} ")


def test_help_of_no_verb_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["help", "wiat"]) == 2
    assert capsys.readouterr().err == (
        "forge-actors: there is no verb 'wiat'; did you mean wait?\n"
    )


@pytest.mark.parametrize("verb", [verb for verb in program.VERBS if verb != "run"])
def test_help_of_a_verb_teaches_with_examples(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        program.main([verb, "--help"])
    out = capsys.readouterr().out
    assert left.value.code == 0
    examples = out.partition("examples:\n")[2].splitlines()
    lines = [line for line in examples if f"forge-actors {verb}" in line]
    assert 1 <= len(lines) <= 3
    assert len(lines) == len(examples)
    assert "--json" in out or verb == "repo"


CLIENT_VERBS = (
    "schedule list",
    "submit -- x",
    "jobs",
    "show j000001",
    "why j000001",
    "logs j000001",
    "wait j000001 --timeout 0",
    "fence check --job j000001 --attempt 1 --fence 1",
    "hold j000001",
    "unhold j000001",
    "quarantine list",
    "pause j000001",
    "resume --all",
    "edit j000001 --priority P0",
    "cancel j000001",
    "retry j000001",
    "repo list",
    "repo add .",
    "events",
    "status",
    "settings show",
    "settings reload",
    "secret list",
    "status --wait",
    "drain",
    "stop",
)


async def test_a_client_verb_loads_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"  # an editable install may have loaded some
        "from forge_actors.cli.main import main\n"
        "status = main(sys.argv[1:])\n"
        f"heavy = {HEAVY!r} & (set(sys.modules) - before)\n"
        "print('heavy:', *sorted(heavy), file=sys.stderr)\n"
        "sys.exit(status)"
    )
    environment = {**os.environ, "FORGE_CONTROLLER_HOME": str(tmp_path)}
    async with fake_service(tmp_path):
        for words in CLIENT_VERBS:
            done = await trio.run_process(
                [sys.executable, "-c", code, *words.split()],
                env=environment,
                capture_stdout=True,
                capture_stderr=True,
                check=False,
            )
            # Its time is over; nothing of it runs.
            expected = {"wait": 5, "fence": 3}.get(words.split()[0], 0)
            assert done.returncode == expected, words
            assert done.stderr.decode().endswith("heavy:\n"), words


def seconds(command: list[str], environment: dict[str, str]) -> float:
    """What it takes of the processor, which is no matter of what else runs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_a_client_verb_starts_within_five_times_an_empty_program(
    tmp_path: Path,
) -> None:
    environment = {**os.environ, "FORGE_CONTROLLER_HOME": str(tmp_path)}
    # As installed: compiled once, not for each start.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path / "compiled")
    seconds([*PROGRAM, "jobs"], environment)
    empty, ours = [], []
    for _ in range(9):
        empty.append(seconds([sys.executable, "-c", "pass"], environment))
        ours.append(seconds([*PROGRAM, "jobs"], environment))
    # The least of each is what it costs; the rest is what others did meanwhile.
    assert min(ours) <= 5 * min(empty)


def problems(said: str) -> list[str]:
    """What a start says, but how far it is: that is told where it takes a while."""
    lines = said.splitlines()
    return [line for line in lines if "the service starts: " not in line]


def test_a_service_in_the_background(tmp_path: Path) -> None:
    home = tmp_path / "home"

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*PROGRAM, "--home", str(home), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    started = call("serve", "--detach")
    assert started.returncode == 0, started.stderr
    try:
        pid = int(started.stdout)
        status = json.loads(call("status", "--json").stdout)
        assert (status["service"]["pid"], os.getsid(pid)) == (pid, pid)
        second = call("serve", "--detach")
        assert second.returncode == 3
        assert f"pid {pid}" in second.stderr
        assert len(problems(second.stderr)) == 1
        submitted = call("submit", "--repo", "nowhere", "--", "x")
        assert submitted.returncode == 2
    finally:
        stopped = call("stop")
    assert stopped.returncode == 0
    # `stop` returned when the service had ended, so the home is free at once.
    assert not os.path.exists(f"/proc/{pid}/cwd")
    assert call("status").returncode == 4
    listed = call("jobs", "--json")
    assert (listed.returncode, listed.stdout) == (0, "[]\n")
    assert "this is what its store holds" in listed.stderr


def test_a_service_is_ours_wherever_it_is_started(tmp_path: Path) -> None:
    """The folder has a package of our name, and a module of a name that we import."""
    folder = tmp_path / "folder"
    (folder / "forge_actors").mkdir(parents=True)
    for name in ("forge_actors/__init__.py", "trio.py"):
        (folder / name).write_text("raise SystemExit('not ours')\n")
    program = [sys.executable, "-P", "-m", "forge_actors"]
    command = [*program, "--home", str(tmp_path / "home")]

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *words], capture_output=True, text=True, check=False, cwd=folder
        )

    started = call("serve", "--detach")
    assert started.returncode == 0, started.stderr
    assert call("stop").returncode == 0


def test_a_service_that_does_not_start_says_why(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "settings.toml").write_text("[limits]\nworkerz = 1\n")
    command = [*PROGRAM, "serve", "--detach", "--home", str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    [problem] = problems(done.stderr)
    assert "workerz: is not a known field" in problem
