"""`clean`, and the clean-up in `status` and `doctor`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.cli import clean as verb
from forge_actors.cli.clean_text import clean_up_lines
from forge_actors.domain.cleaning import CLASSES, ClassReport, Removal
from forge_actors.domain.maintenance import CleanResult
from forge_actors.edges.sqlite.connection import opened_alone
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell

RESULT = CleanResult(
    reports=[
        ClassReport("logs", removed=2, bytes=3 << 20, skipped={"it is young": 4}),
        ClassReport("jobs", failed=1, error="job x: no"),
    ],
    removals=[Removal("logs", "logs/a\x1b[2J", "older than 30d", 3 << 20)],
)


def test_the_classes_are_those_of_the_clean_up() -> None:
    assert verb.CLASSES == CLASSES


async def test_it_tells_what_went_and_what_stays(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        control.clean_result = RESULT
        status, out, err = await shell("clean", "--class", "logs", "--class", "jobs")
        assert status == 1, "something could not be removed"
        [asked] = control.cleaned
        assert (asked.classes, asked.dry_run) == (("logs", "jobs"), False)
        head, line = out.splitlines()
        assert head.split() == ["CLASS", "WHAT", "SIZE", "WHY"]
        assert line.split() == ["logs", "logs/a", "3", "MiB", "older", "than", "30d"]
        assert "and 1 more" in err
        assert "logs: 4 stay, it is young" in err
        assert "jobs: 1 failed, job x: no" in err
        assert "2 removed, 3 MiB" in err


async def test_a_dry_run_is_one(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        control.clean_result = CleanResult(dry_run=True, reports=RESULT.reports)
        _, _, err = await shell("clean", "--dry-run")
        assert control.cleaned[0].dry_run
        assert "2 would be removed" in err


async def test_the_answer_is_one_document(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        control.clean_result = RESULT
        _, out, _ = await shell("clean", "--json")
        answer = json.loads(out)
        assert (answer["removed"], answer["bytes"], answer["failed"]) == (2, 3 << 20, 1)
        assert answer["reports"][0]["skipped"] == {"it is young": 4}


async def test_a_run_that_failed_is_an_error(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        control.clean_result = CleanResult(error="the clean-up took too long")
        status, _, err = await shell("clean")
        assert status == 1
        assert "the clean-up took too long" in err


async def test_a_class_that_there_is_not_is_a_usage_error(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        status, _, err = await shell("clean", "--class", "everything")
        assert status == 2
        assert "'everything' is none of jobs, logs" in err
        assert control.cleaned == []


async def test_without_a_service_it_works_on_the_home(
    tmp_path: Path, shell: Shell
) -> None:
    with opened_alone(tmp_path / "store.sqlite"):
        pass
    status, out, err = await shell("clean", "--dry-run", "--json")
    assert status == 0, err
    assert json.loads(out)["dry_run"] is True
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store.sqlite"]
    status, _, err = await shell("clean")
    assert status == 0
    assert "removed" in err


async def test_where_there_is_no_home_nothing_is_made(
    tmp_path: Path, shell: Shell
) -> None:
    status, _, err = await shell("clean")
    assert status == 2
    assert "is no home of a service" in err
    assert list(tmp_path.iterdir()) == []


SHOWN: dict[str, Any] = {
    "enabled": True,
    "runs": 7,
    "removed": 30,
    "bytes": 5 << 20,
    "last": {"began_at": "B", "ended_at": "E", "error": None},
    "problem": None,
    "classes": {
        "logs": {
            "ended": True,
            "removed": 3,
            "bytes": 1024,
            "skipped": {"it is young": 4},
            "failed": 1,
            "error": "no\x1b[2J",
        },
        "jobs": {"ended": False},
    },
}


def test_the_state_tells_of_the_last_run() -> None:
    lines = "\n".join(clean_up_lines(SHOWN))
    for told in (
        "last     E, 7 runs in all",
        "removed  30 things, 5 MiB in all",
        "jobs         the last visit did not end",
        "logs         3 removed, 1 KiB",
        "logs         4 stay, it is young",
        "logs         1 failed, no",
    ):
        assert told in lines
    assert "\x1b" not in lines
    lines = "\n".join(clean_up_lines({**SHOWN, "removed": 1}))
    assert "removed  1 thing, 5 MiB in all" in lines


def test_the_state_tells_nothing_of_one_that_never_ran() -> None:
    assert clean_up_lines({"last": None}) == []
    assert clean_up_lines({}) == []


@pytest.mark.parametrize("problem", [None, "the clean-up failed 3 times in a row: no"])
def test_one_that_fails_again_and_again_is_shown(problem: str | None) -> None:
    last = clean_up_lines({**SHOWN, "problem": problem})
    assert any("problem" in line for line in last) == (problem is not None)
