"""What keeps a run of an EPIC from beginning: its status, and what stays as it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.epic_stand import Stand

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def stand() -> Iterator[Stand]:
    made = Stand()
    made.issue(1)
    yield made
    made.close()


def refused(stand: Stand, status: int, words: str, *options: str) -> None:
    """A run is, and nothing that was kept is another by then."""
    before = stand.files()
    run = stand.run(*options, script="exit 0")
    assert run.wait() == status, run.lines
    assert words in run.err
    assert "Traceback" not in run.err
    assert stand.files() == before


def test_what_nobody_can_begin_is_refused_and_nothing_is_written(stand: Stand) -> None:
    refused(stand, 2, "is a pull request", "https://github.com/octo/demo/pull/7")
    refused(stand, 2, "no server that is set up", "https://evil.test/o/d/issues/7")
    refused(stand, 2, "--max-parallel", "--max-parallel", "two")
    refused(stand, 2, "allowed: 1 to 16", "--max-parallel", "17")
    refused(stand, 3, "no EPIC run can be here", "--checkout", str(stand.root))
    good = stand.config.read_text()
    stand.config.write_text(good.replace("max_parallel", "most"))
    refused(stand, 2, "epic.most")
    stand.config.write_text("[epic]\n")
    refused(stand, 2, "nothing is set up that does the work")
    stand.config.write_text(good)
    stand.write_plan("[[issue]]\nnumber = 0\n")
    refused(stand, 1, "plan.toml:3: issue[0]: number")
    assert not (stand.common / "forge-actors").exists()


def test_a_record_that_is_damaged_or_of_another_repository_is_left_as_it_is(
    stand: Stand,
) -> None:
    first = stand.run(script="exit 0")
    assert first.wait() == 0, first.lines
    good = stand.record_path.read_text()
    stand.record_path.write_text(good.replace('"schema"', '"schemes"'))
    refused(stand, 1, "--force moves it aside")
    other = json.loads(good)
    other["repository"]["id"] += 1
    stand.record_path.write_text(json.dumps(other))
    refused(stand, 1, f"has {other['repository']['id'] - 1}: is this the right")
    # What cannot be read is moved aside, and kept.
    stand.record_path.write_text("{")
    forced = stand.run("--force", script="exit 0")
    assert forced.wait() == 0, forced.lines
    assert stand.end == ("open", None, "nothing-admissible")
    [aside] = stand.record_path.parent.glob("scheduler.json.*")
    assert aside.read_text() == "{"


def test_one_repository_has_one_run_and_what_a_run_left_open_is_gone_on_with_on_purpose(
    stand: Stand,
) -> None:
    gate, bell = stand.gate(), stand.bell()
    saves = stand.saves(1, "implement")
    run = stand.run(script=f"{saves}; {bell.ring}; {gate.wait}")
    bell.wait()
    run.until("#1: start, generation 1")
    before = stand.files()
    second = stand.run(script="exit 0")
    assert second.wait() == 3
    assert f"another EPIC run (pid {run.pid}) has this repository" in second.err
    assert stand.files() == before
    run.send(9)
    assert run.wait() == -9
    found = stand.status()
    assert (found["state"], found["counts"]) == ("killed", {"running": 1})
    shown = stand.call("status").out
    assert "killed; workers go on with #1, and until they end no other run" in shown
    refused(stand, 3, "workers of one that has ended still do")
    # Who asks for the end then reaches the worker, if that looks.
    asked = stand.call("stop")
    assert asked.wait() == 0
    assert "its workers are asked to end at their next boundary" in asked.err
    follows = stand.call("stop", "--follow")
    follows.until("asked to end")
    gate.open()
    assert follows.wait() == 0

    ended = stand.call("stop")
    assert (ended.wait(), "nothing is to be stopped" in ended.err) == (3, True)
    refused(stand, 3, "has left claims open (#1): go on with them by forge-actors epic")
    assert stand.closings(1) == [None]
    resumed = stand.run(verb="resume", script=stand.saves(1, "done"))
    assert resumed.wait() == 0, resumed.lines
    assert stand.closings(1) == ["superseded", "settled"]
    assert [claim.kind for claim in stand.claims(1)] == ["start", "resume"]
    [child] = stand.status()["children"]
    assert (child["state"], child["title"]) == ("done", "T")
    assert "on b\n" in stand.call("status").out, "where the work is"
