"""`schedule` in front of a service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.domain.schedule_views import NextTime
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell

FILE = """\
[[schedule]]
name = "nightly"
repo = "./app"
cron = "30 2 * * *"
timezone = "Europe/Prague"
[schedule.job]
argv = ["make", "test"]
kind = "check"
"""


async def test_one_is_added_changed_and_removed(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        words = ("schedule", "add", "tick", "--repo", "app", "--every", "15m")
        policy = ("--overlap", "queue", "--jitter", "5s", "--priority", "P1")
        status, out, _ = await shell(*words, *policy, "--", "make", "-k")
        assert (status, out) == (0, "tick\n")
        made = control.kept_schedules["tick"].definition
        assert (made["every"], made["overlap"], made["jitter"]) == (
            "15m",
            "queue",
            "5s",
        )
        assert made["job"] == {"argv": ["make", "-k"], "priority": "P1"}
        status, *_ = await shell("schedule", "edit", "tick", "--cron", "@daily")
        made = control.kept_schedules["tick"].definition
        assert (status, made["cron"], "every" in made) == (0, "@daily", False)
        assert made["job"]["argv"] == ["make", "-k"]
        status, out, _ = await shell("schedule", "pause", "tick")
        assert (status, out) == (0, "tick paused\n")
        _, out, _ = await shell("schedule", "list")
        assert "it was asked" in out
        _, out, _ = await shell("schedule", "run", "tick", "--request-id", "x")
        assert (out, control.ran) == ("occ-1\n", [("tick", "x")])
        assert (await shell("schedule", "remove", "tick"))[0] == 0
        status, _, err = await shell("schedule", "show", "tick")
        assert (status, "no schedule 'tick'" in err) == (2, True)


async def test_options_change_what_they_name(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        words = ("schedule", "add", "tick", "--repo", "app", "--every", "15m")
        await shell(*words, "--shadow", "--env", "A=1", "--", "make")
        edit = ("schedule", "edit", "tick", "--timeout", "10m", "--env", "B=2")
        assert (await shell(*edit, "--no-shadow"))[0] == 0
        made = control.kept_schedules["tick"].definition
        assert not made.get("shadow")
        assert made["job"] == {
            "argv": ["make"],
            "env": {"A": "1", "B": "2"},
            "timeout": "10m",
        }


async def test_one_waits_for_something_to_come_to_pass(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        words = ("schedule", "add", "deploy", "--repo", "app", "--on", "ended:build")
        more = ("--every", "5m", "--not-while", "release", "--not-while", "approval")
        assert (await shell(*words, *more, "--", "make"))[0] == 0

        def kept(*names: str) -> list[object]:
            definition = control.kept_schedules["deploy"].definition
            return [definition.get(name) for name in names]

        assert kept("on", "every") == ["ended:build", "5m"]
        assert kept("not_while") == [["release", "approval"]]
        edit = ("schedule", "edit", "deploy")
        assert (await shell(*edit, "--every", "1h", "--not-while", "nothing"))[0] == 0
        assert kept("on", "every", "not_while") == ["ended:build", "1h", None]
        assert (await shell(*edit, "--on", "clean"))[0] == 0
        assert kept("on", "every") == ["clean", None]
        assert (await shell(*edit, "--cron", "@daily"))[0] == 0
        assert kept("on", "cron") == [None, "@daily"]
        view = control.kept_schedules["deploy"]
        waits = "a job ends"
        control.kept_schedules["deploy"] = structs.replace(view, waits_for=waits)
        control.ahead = [NextTime(None, True, f"when {waits}")]
        _, out, _ = await shell("schedule", "show", "deploy")
        assert "waits for a job ends\nnext      not by time\n" in out
        _, out, _ = await shell("schedule", "next", "deploy")
        assert out == "not by time  runs: when a job ends\n"


async def test_a_time_of_toml_is_a_time(tmp_path: Path, shell: Shell) -> None:
    path = tmp_path / "schedules.toml"
    path.write_text(FILE.replace('cron = "30 2 * * *"', "at = 2030-01-02T03:04:00"))
    async with fake_service(tmp_path) as control:
        assert (await shell("schedule", "apply", str(path)))[0] == 0
        made = control.kept_schedules["nightly"].definition
        assert made["at"] == "2030-01-02 03:04:00"


async def test_a_job_can_come_later(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        status, out, err = await shell("submit", "--in", "90m", "--", "make")
        assert (status, "comes at" in err) == (0, True)
        made = control.kept_schedules[out.strip()].definition
        assert (made["transient"], made["job"]["argv"]) == (True, ["make"])
        status, _, err = await shell("submit", "--in", "1h", "--name", "x", "--", "y")
        assert (status, "--name cannot be given" in err) == (2, True)


async def test_a_file_is_checked_and_applied(tmp_path: Path, shell: Shell) -> None:
    path = tmp_path / "schedules.toml"
    path.write_text(FILE)
    async with fake_service(tmp_path) as control:
        status, out, err = await shell("schedule", "check", str(path))
        assert (status, out, "is good" in err) == (0, "added nightly\n", True)
        assert not control.kept_schedules
        status, out, _ = await shell("schedule", "apply", str(path), "--json")
        assert (status, json.loads(out)["added"]) == (0, ["nightly"])
        kept = control.kept_schedules["nightly"]
        assert (kept.repo, kept.source) == (str(tmp_path / "app"), str(path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[schedule]\n", "schedules.toml"),
        ("[schedule]\nname = 'x'\n", "[[schedule]]"),
        ("[[schedules]]\n", "schedules: is not known"),
        ("\xff", "no UTF-8"),
        (FILE.replace("cron", "crno"), "did you mean 'cron'"),
    ],
)
async def test_a_bad_file_is_one_error(
    text: str, said: str, tmp_path: Path, shell: Shell
) -> None:
    path = tmp_path / "schedules.toml"
    path.write_bytes(text.encode("latin-1"))
    async with fake_service(tmp_path) as control:
        status, out, err = await shell("schedule", "apply", str(path))
        assert (status, out, said in err) == (2, "", True)
        assert err.count("\n") == 1
        assert not control.kept_schedules


async def test_what_makes_no_sense_is_said(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path):
        add = ("schedule", "add", "x")
        assert (await shell(*add, "--every", "1h"))[0] == 2
        assert (await shell(*add, "--every", "1h", "--cron", "@daily"))[0] == 2
        assert (await shell("schedule", "list", "--", "x"))[0] == 2
        assert (await shell("schedule", "apply", str(tmp_path / "none")))[0] == 2
