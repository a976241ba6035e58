"""Jobs that wait or run can be held, paused and changed, and it lasts."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import survivors

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService


def states(mark: str) -> list[str]:
    """The letters in /proc of all processes with the marker."""
    found = []
    for line in survivors(mark):
        # A program that is being started has the marker too, and may be gone by now.
        with suppress(OSError):
            stat = Path(f"/proc/{line.split()[0]}/stat").read_text()
            found.append(stat.rpartition(")")[2].split()[0])
    return found


def pass_time(service: LiveService, seconds: float) -> None:
    """Until a job that sleeps so long has ended, and all that was asked before."""
    options = ("--repo", "app", "--read-only")
    clock = service.submit(*options, "--", "sleep", str(seconds))
    assert service.end_of(clock)["state"] == "succeeded"


def tree(
    service: LiveService, *options: str, first: str = ":", rest: str = "wait"
) -> tuple[str, str]:
    """A running job of three levels, and the marker of each of its processes."""
    mark, bell = service.marker(), service.bell()
    inner = f"bash -c 'sleep {mark} & {bell.ring}; wait; true {mark}'"
    job = service.bash("app", f"{first}; {inner} & {rest}; true {mark}", *options)
    bell.wait()
    service.pid_of(job)
    # The innermost may be in the middle of its exec, when it has no arguments.
    while len(states(mark)) != 3:
        os.sched_yield()
    return job, mark


def test_a_pause_stops_the_whole_tree_and_the_clock_of_its_budget(
    service: LiveService,
) -> None:
    """P-09: all three levels stand still, and the run's time budget with them."""
    gate = service.gate()
    rest = f"{gate.wait}; exit 0"
    job, mark = tree(service, "--timeout", "3s", "--keep-leftovers", rest=rest)
    assert service.cli("pause", job, status=0).out == f"{job} paused\n"
    pass_time(service, 3.5)
    assert states(mark) == ["T"] * 3
    shown = service.show(job)
    assert (shown["state"], shown["paused"]) == ("running", True)
    assert "somebody paused it" in service.why(job)
    assert "  paused" in service.cli("jobs").out
    gate.open()
    assert service.cli("resume", job, status=0).out == f"{job} running\n"
    assert service.end_of(job)["state"] == "succeeded"


def test_a_paused_job_ends_when_it_is_cancelled(service: LiveService) -> None:
    """P-08: it acts on its stop signal, so no force is needed."""
    trap = "trap 'echo cleaned; exit 3' TERM"
    loop = "while :; do sleep 0.05; done"
    job, mark = tree(service, "--grace", "60s", first=trap, rest=loop)
    service.cli("pause", job, status=0)
    pass_time(service, 0.3)
    assert set(states(mark)) == {"T"}
    service.cli("cancel", job, status=0)
    end = service.end_of(job)
    assert (end["state"], end["forced"]) == ("cancelled", False)
    assert survivors(mark) == []
    assert service.log(job, "--stream", "stdout") == b"cleaned\n"
    refused = service.cli("pause", job, status=3)
    assert f"job {job} has ended (cancelled): too late to pause it" in refused.err


@pytest.mark.parametrize("how", ["one", "all"])
def test_a_service_with_paused_jobs_stops(service: LiveService, how: str) -> None:
    """P-08: a service with paused jobs ends, and they with it if they are to."""
    job, mark = tree(service, "--grace", "60s")
    service.cli("pause", *([job] if how == "one" else ["--all", "--jobs"]), status=0)
    service.terminate()
    assert set(states(mark)) == {"T"}
    service.start()
    assert set(states(mark)) == {"T"}
    service.end()
    assert survivors(mark) == []
    service.start()
    assert service.show(job)["state"] == "human_attention_required"


def test_a_pause_of_everything_lets_run_what_runs(service: LiveService) -> None:
    job, mark = tree(service)
    waits = service.bash("app", "true")
    assert service.cli("pause", "--all", status=0).out.startswith("all  since 20")
    assert "T" not in states(mark)
    assert "everything is paused" in service.why(waits)
    service.cli("pause", "--all", "--jobs", status=0)
    status = service.json("status")
    assert [(p["scope"], p["jobs"]) for p in status["pauses"]] == [("all", True)]
    assert "everything is paused" in service.why(job)
    assert service.cli("resume", "--all", status=0).out == "nothing is paused\n"
    pass_time(service, 0.2)
    assert "T" not in states(mark)
    service.cli("cancel", job, status=0)
    assert service.end_of(waits)["state"] == "succeeded"


def test_holds_and_pauses_outlive_a_crash(service: LiveService) -> None:
    service.cli("pause", "--repo", "app", "--provider", "codex", status=0)
    held, free = (service.bash("app", "true") for _ in range(2))
    assert service.cli("hold", held, status=0).out == f"{held} held\n"
    assert service.cli("hold", held, status=0).out == f"{held} held\n"
    service.kill()
    service.start()
    status = service.json("status")
    assert [p["scope"] for p in status["pauses"]] == ["provider:codex", "repo:app"]
    assert status["providers"]["codex"]["state"] == "paused"
    waiting = [service.show(job)["waiting"]["kind"] for job in (held, free)]
    assert waiting == ["pause", "pause"]
    service.cli("resume", "--repo", "app", status=0)
    assert service.end_of(free)["state"] == "succeeded"
    why = service.why(held)
    assert f"it is held; forge-actors unhold {held} lets it go on" in why
    service.cli("unhold", held, status=0)
    assert service.end_of(held)["state"] == "succeeded"
    kinds = [entry.kind for entry in service.events()]
    for kind in ("paused", "resumed", "job_held", "job_unheld"):
        assert kind in kinds


def test_a_running_job_is_not_held_and_selectors_pass_it_over(
    service: LiveService,
) -> None:
    gate = service.gate()
    runs = service.bash("app", gate.wait, "--label", "x")
    service.until(runs, "job_running")
    waits = service.bash("app", "true", "--label", "x")
    refused = service.cli("hold", runs, status=3)
    assert refused.err == (
        f"forge-actors: job {runs} runs: hold is for jobs that wait; use pause\n"
    )
    assert service.cli("hold", "--label", "x", status=0).out == f"{waits} held\n"
    gate.open()
    service.cli("resume", waits, status=0)
    assert service.end_of(waits)["state"] == "succeeded"


def test_a_waiting_job_is_edited_and_starts_at_its_new_place(
    service: LiveService,
) -> None:
    gate = service.gate()
    first = service.bash("app", gate.wait)
    service.until(first, "job_running")
    second, third = (service.bash("app", "true") for _ in range(2))
    done = service.cli("edit", third, "--priority", "P0", "--label", "now", status=0)
    assert done.out == f"{third} changed: priority, labels\n"
    shown = service.show(third)
    assert (shown["priority"], shown["labels"]) == ("P0", ["now"])
    before = service.show(second)
    for words, status, problem in (
        (("--priority", "P7"), 2, "allowed: P0, P1, P2, P3, P4"),
        (("--label", "x", "--timeout", "never"), 2, "timeout: 'never' is no duration"),
        ((), 2, "nothing to change"),
    ):
        assert problem in service.cli("edit", second, *words, status=status).err
    assert service.show(second)["labels"] == before["labels"]
    refused = service.cli("edit", first, "--priority", "P0", status=3)
    assert "runs: only a job that waits can be edited" in refused.err
    gate.open()
    service.wait(second, third)
    kinds = [e.job for e in service.events() if e.kind == "job_dispatched"]
    assert kinds == [first, third, second]


def test_an_unknown_place_is_told_with_those_there_are(service: LiveService) -> None:
    unknown = service.cli("pause", "--provider", "codx", status=2)
    assert "provider: 'codx' is no known provider (allowed: claude, co" in unknown.err
    unknown = service.cli("pause", "--repo", "ap", status=2)
    assert "did you mean 'app'? (allowed: app)" in unknown.err
    assert "nothing to pause: give --all" in service.cli("pause", status=2).err
    assert service.json("status")["pauses"] == []
