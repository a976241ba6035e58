"""The scripts that complete, run by the shells they are for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.cli import main as program
from forge_actors.cli.grammar import grammar, value_options
from forge_actors.domain.jobs import KINDS, STATES
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.cli.shell import Shell

BASH = """\
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_forge_actors
printf '%s\\n' "${COMPREPLY[@]}"
"""


class Bash:
    """Completes in a real bash; `forge-actors` there is the program under test."""

    def __init__(self, folder: Path, script: str) -> None:
        self._folder = folder
        (folder / "script").write_text(script)
        starter = folder / "forge-actors"
        starter.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m forge_actors "$@"\n')
        starter.chmod(0o755)

    def __call__(self, *words: str) -> set[str]:
        done = subprocess.run(
            ["bash", "--norc", "-c", BASH, "bash", "script", "forge-actors", *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder,
            env={**os.environ, "PATH": f"{self._folder}:{os.environ['PATH']}"},
        )
        assert (done.returncode, done.stderr) == (0, "")
        return set(done.stdout.split())


@pytest.fixture
def bash(tmp_path: Path, shell: Shell) -> Bash:
    folder = tmp_path / "shell"
    folder.mkdir()
    status, out, err = shell.now("completions", "bash")
    assert (status, err) == (0, "")
    return Bash(folder, out)


def test_verbs_options_and_words_are_completed(bash: Bash) -> None:
    assert {*program.VERBS, "help", "--help"} <= bash("")
    assert bash("wa") == {"wait", "watch"}
    assert bash("help", "ca") == {"cancel"}
    actions = {
        "add",
        "list",
        "show",
        "trust",
        "relocate",
        "remove",
        "enable",
        "disable",
    }
    assert bash("repo", "") == actions
    assert bash("repo", "remove", "--c") == {"--cancel"}
    assert bash("submit", "--ti") == {"--timeout"}
    assert bash("jobs", "--state", "") == set(STATES)
    assert bash("jobs", "--state", "fa") == {"failed"}
    assert bash("jobs", "--state", "=", "fa") == {"failed"}
    assert bash("wait", "x", "--kind", "") == set(KINDS)
    assert bash("events", "--kind", "job_f") == {"job_failed"}
    assert bash("events", "--kind", "=", "job_f") == {"job_failed"}
    assert bash("why", "--color", "a") == {"auto", "always"}
    assert bash("submit", "--priority", "") == {"P0", "P1", "P2", "P3", "P4"}
    assert bash("completions", "") == {"bash", "zsh", "fish"}
    assert bash("submit", "--name", "") == set()
    # What is behind -- is the command of a job.
    assert bash("submit", "--", "wa") == set()


def test_files_and_folders_are_completed(bash: Bash, tmp_path: Path) -> None:
    (tmp_path / "shell" / "two words").mkdir()
    (tmp_path / "shell" / "jobs.jsonl").touch()
    assert bash("submit", "--batch", "jo") == {"jobs.jsonl"}
    assert bash("submit", "--cwd", "two") == {"two", "words"}
    assert bash("jobs", "--home", "jo") == set()


async def test_jobs_and_repositories_come_from_the_service(
    tmp_path: Path, shell: Shell, bash: Bash
) -> None:
    async def complete(*words: str) -> set[str]:
        home = ("--home", str(tmp_path))
        return await trio.to_thread.run_sync(bash, *home, *words)

    async with fake_service(tmp_path) as control:
        await control.add_repository("/src/app")
        await control.add_repository("/src/lib")
        jobs = [await shell.submit() for _ in range(3)]
        control.end(jobs[0])
        tails = {job[-6:] for job in jobs}
        assert await complete("show", "") == tails
        assert await complete("wait", "") == tails - {jobs[0][-6:]}
        assert await complete("show", jobs[1][-6:]) == {jobs[1][-6:]}
        assert await complete("logs", "j0000") == set(jobs)
        assert await complete("jobs", "--repo", "") == {"app", "lib"}
        assert await complete("repo", "show", "a") == {"app"}
        assert await complete("secret", "remove", "") == set()


def test_no_service_completes_nothing_and_says_nothing(
    tmp_path: Path, shell: Shell, bash: Bash
) -> None:
    assert bash("--home", str(tmp_path), "show", "") == set()
    for words in ("jobs", "active", "repos"):
        assert shell.now("completions", "--words", words) == (0, "", "")


async def test_a_name_that_a_shell_would_run_is_not_offered(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        await control.add_repository("/src/app", "$(touch owned)")
        await control.add_repository("/src/app", "app")
        assert await shell("completions", "--words", "repos") == (0, "app\n", "")


def test_an_option_means_the_same_everywhere() -> None:
    """The scripts look at the word before; it must tell enough."""
    verbs = grammar()
    taking = set(value_options(verbs))
    flags = {
        name
        for verb in verbs
        for part in (verb, *verb.actions)
        for option in part.options
        if not option.takes_value
        for name in option.names
    }
    assert taking & flags == set()


@pytest.mark.parametrize(("name", "check"), [("zsh", "-n"), ("fish", "--no-execute")])
def test_other_shells_read_their_script(
    tmp_path: Path, shell: Shell, name: str, check: str
) -> None:
    _, out, _ = shell.now("completions", name)
    assert "human_attention_required" in out
    if shutil.which(name) is None:
        pytest.skip(f"NOT RUN: there is no {name} here")
    script = tmp_path / "script"
    script.write_text(out)
    subprocess.run([name, check, str(script)], check=True)


def complete_in(command: Sequence[str], text: str) -> set[str]:
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, check=True
    )
    return {line.split("\t")[0] for line in done.stdout.splitlines()}


@pytest.mark.skipif(shutil.which("fish") is None, reason="NOT RUN: no fish here")
def test_fish_completes(tmp_path: Path, shell: Shell) -> None:
    script = tmp_path / "script"
    script.write_text(shell.now("completions", "fish")[1])
    for words, wanted in (
        ("wa", {"wait"}),
        ("jobs --state fa", {"failed"}),
        ("repo ", {"add", "list", "show", "remove", "enable", "disable"}),
        ("submit --ti", {"--timeout"}),
    ):
        text = f"source {script}; complete -C 'forge-actors {words}'"
        assert complete_in(["fish", "--no-config"], text) == wanted, words


def test_a_shell_must_be_named(shell: Shell) -> None:
    for words, message in (
        ((), "which shell? bash, zsh or fish"),
        (("csh",), "'csh' is unknown"),
    ):
        status, out, err = shell.now("completions", *words)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert message in err
