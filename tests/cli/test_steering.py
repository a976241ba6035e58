"""`hold`, `unhold`, `pause`, `resume` and `edit` in front of a service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.cli import steering
from forge_actors.domain.jobs import WAITING
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.testing.control import FakeControl
    from tests.cli.shell import Shell


def run(control: FakeControl, job: str) -> None:
    view = control.views[job]
    control.views[job] = structs.replace(view, state="running", waiting=None)


def test_the_waiting_states_are_those_of_the_domain() -> None:
    assert set(steering.WAITING) == WAITING


async def test_jobs_are_held_and_let_go(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        first, second = [await shell.submit("--label", "x") for _ in range(2)]
        running = await shell.submit("--label", "x")
        run(control, running)
        status, out, err = await shell("hold", first, second)
        assert (status, out, err) == (0, f"{first} held\n{second} held\n", "")
        status, out, _ = await shell("unhold", "--label", "x")
        assert (status, out) == (0, f"{second} queued\n{first} queued\n")
        status, out, err = await shell("hold", running)
        assert (status, out) == (3, "")
        assert "hold is for jobs that wait" in err
        [view] = json.loads((await shell("hold", first, "--json"))[1])
        assert view["waiting"]["kind"] == "pause"


@pytest.mark.parametrize("verb", ["hold", "pause", "cancel"])
async def test_an_id_that_is_wrong_is_told_before_anything_is_done(
    tmp_path: Path, shell: Shell, verb: str
) -> None:
    async with fake_service(tmp_path) as control:
        job = await shell.submit()
        before = control.views[job]
        status, out, err = await shell(verb, job, "nowhere")
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "'nowhere'" in err
        assert control.views[job] == before


async def test_nothing_to_hold_is_told_in_the_words_that_were_typed(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        run(control, await shell.submit("--label", "x"))
        assert await shell("hold", "--label", "x") == (
            3,
            "",
            "forge-actors: no job that has not ended matches --label x\n",
        )


async def test_single_jobs_are_paused_and_resumed(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        waits, runs = await shell.submit(), await shell.submit("--label", "x")
        run(control, runs)
        _, out, _ = await shell("pause", waits, runs)
        assert out == f"{waits} held\n{runs} paused\n"
        assert " paused" in (await shell("jobs"))[1]
        _, out, _ = await shell("resume", "--label", "x", "--repo", ".")
        assert out == f"{runs} running\n"


async def test_places_are_paused_and_resumed(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        folder = tmp_path / "app"
        folder.mkdir()
        await shell("repo", "add", str(folder))
        status, out, _ = await shell("pause", "--repo", "app", "--provider", "codex")
        assert status == 0
        assert out.splitlines() == [
            "provider:codex  since 2026-01-02T03:04:05Z",
            "repo:app        since 2026-01-02T03:04:05Z",
        ]
        _, out, _ = await shell("pause", "--all", "--jobs")
        assert out.splitlines()[-1].endswith("Z, with running jobs")
        _, out, _ = await shell("status")
        assert "\npaused\n  provider:codex  since" in out
        answer = json.loads((await shell("resume", "--all", "--json"))[1])
        assert len(answer["pauses"]) == 2
        _, out, _ = await shell("resume", "--repo", "app", "--provider", "codex")
        assert out == "nothing is paused\n"
        assert control.pauses == {}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--provider codex --repo nowhere", "there is no repository 'nowhere'"),
        ("--repo app --provider nobody", "provider: 'nobody' is no known provider"),
    ],
)
async def test_places_are_paused_together_or_not_at_all(
    tmp_path: Path, shell: Shell, words: str, problem: str
) -> None:
    async with fake_service(tmp_path) as control:
        folder = tmp_path / "app"
        folder.mkdir()
        await shell("repo", "add", str(folder))
        status, out, err = await shell("pause", *words.split())
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert problem in err
        assert control.pauses == {}


@pytest.mark.parametrize("verb", ["pause", "resume"])
@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "nothing to "),
        (("--jobs",), "nothing to "),
        (("--all", "j000001"), "give one of them"),
        (("--all", "--repo", "app"), "give one of them"),
        (("--provider", "codex", "--kind", "check"), "give one of them"),
        (("--jobs", "j000001"), "--jobs goes with --all, --repo or --provider"),
    ],
)
def test_what_is_to_be_paused_must_be_clear(
    shell: Shell, verb: str, words: tuple[str, ...], problem: str
) -> None:
    status, out, err = shell.now(verb, *words)
    assert (status, out) == (2, "")
    assert problem in err


async def test_an_edit_sends_what_is_given(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        job = await shell.submit("--label", "old")
        words = ("--priority", "P0", "--claim", "read:path:a", "--no-labels")
        status, out, _ = await shell("edit", job, *words)
        assert (status, out) == (0, f"{job} changed: priority, claims, labels\n")
        view = control.views[job]
        assert (view.priority, view.claims, view.labels) == ("P0", ["read:path:a"], [])
        view = json.loads((await shell("edit", job, "--label", "x", "--json"))[1])
        assert (view["labels"], view["priority"]) == (["x"], "P0")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "nothing to change"),
        (("--label", "x", "--no-labels"), "exclude each other"),
        (("--prio", "P0"), "did you mean --priority?"),
    ],
)
def test_an_edit_of_nothing_is_a_mistake(
    shell: Shell, words: tuple[str, ...], problem: str
) -> None:
    status, _, err = shell.now("edit", "j000001", *words)
    assert status == 2
    assert problem in err
