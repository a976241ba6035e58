"""Stopping jobs: once is enough, more often does no harm, and stopped is stopped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import survivors
from tests.acceptance.calls import happenings, together

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService

REPEATED = ("--replay", "always", "--max-attempts", "4")


def test_a_job_that_is_stopped_while_it_runs_is_not_tried_again(
    service: LiveService,
) -> None:
    """C-01: also if it answers the signal by a failure, or by none at all."""
    jobs = []
    bell = service.bell()
    for ending in ("exit 1", "exit 0", "trap - TERM; kill -TERM $$"):
        script = f"trap '{ending}' TERM; {bell.ring}; while :; do sleep 0.05; done"
        jobs.append(service.bash("app", script, *REPEATED, "--read-only"))
    bell.wait(len(jobs))
    service.cli("cancel", *jobs, status=0)
    for end in service.wait(*jobs):
        assert (end["state"], end["attempt"]) == ("cancelled", 1)
    check_stopped(service, jobs)


def test_a_job_that_is_stopped_between_two_attempts_stays_stopped(
    service: LiveService,
) -> None:
    """C-01: it failed, or the service died under it, and its next turn is to come."""
    bell, gate = service.bell(), service.gate()
    failed = service.bash("app", f"{gate.wait}; exit 3", *REPEATED, "--read-only")
    script = f"{bell.ring}; sleep {service.marker()}"
    interrupted = service.bash("app", script, *REPEATED, "--read-only")
    bell.wait()
    service.cli("pause", "--repo", "app", status=0)
    gate.open()
    next(happenings(service, failed, "job_waiting_for_retry"))
    service.crash()
    service.start()
    for job in (failed, interrupted):
        view = service.show(job)
        assert view["state"] in ("queued", "waiting_for_retry")
        assert view["attempt"] == 1
    service.cli("cancel", failed, interrupted, status=0)
    service.cli("resume", "--repo", "app", status=0)
    check_stopped(service, [failed, interrupted])


def check_stopped(service: LiveService, jobs: list[str]) -> None:
    """They stay so, whatever comes next, a new service included."""
    before = [service.show(job) for job in jobs]
    assert {view["state"] for view in before} == {"cancelled"}
    service.end_of(service.bash("app", "true"))
    service.kill()
    service.start()
    service.end_of(service.bash("app", "true"))
    assert [service.show(job) for job in jobs] == before
    kinds = [(e.kind, e.job) for e in service.events()]
    for view in before:
        assert kinds.count(("job_dispatched", view["id"])) == view["attempt"]
        assert kinds[::-1].index(("job_cancelled", view["id"])) == min(
            place for place, (_, job) in enumerate(kinds[::-1]) if job == view["id"]
        )


def test_seven_stops_at_once_end_seven_jobs(service: LiveService) -> None:
    """C-02"""
    mark, bell = service.marker(), service.bell()
    script = f"{bell.ring}; sleep {mark}"
    running = [service.bash("app", script, "--read-only") for _ in range(4)]
    bell.wait(4)
    jobs = [*running, *(service.bash("app", script, "--read-only") for _ in range(3))]
    calls = together(service, [["cancel", job] for job in jobs])
    assert [(done.status, done.err) for done in calls] == [(0, "")] * 7
    ends = service.wait(*jobs)
    assert [end["state"] for end in ends] == ["cancelled"] * 7
    assert [end["attempt"] for end in ends[:4]] == [1] * 4
    assert survivors(mark) == []


def test_five_stops_of_one_job_are_one_stop(service: LiveService) -> None:
    """C-02: those that come too late are no errors either."""
    bell = service.bell()
    script = f"trap 'echo once; exit 1' TERM; {bell.ring}; while :; do sleep 0.05; done"
    job = service.bash("app", script, "--grace", "60s")
    bell.wait()
    calls = together(service, [["cancel", job]] * 5)
    assert [(done.status, done.err) for done in calls] == [(0, "")] * 5
    end = service.end_of(job)
    assert (end["state"], end["forced"]) == ("cancelled", False)
    assert service.log(job, "--stream", "stdout") == b"once\n"
    again = service.cli("cancel", job, status=0)
    assert (again.out, again.err) == (f"{job} cancelled\n", "")
    kinds = [entry.kind for entry in service.events() if entry.job == job]
    assert kinds.count("job_cancelled") == 1


@pytest.mark.parametrize("turn", range(3))
def test_a_stop_and_a_pause_at_once_end_in_a_stop(
    service: LiveService, turn: int
) -> None:
    """C-02: whichever comes first, nothing stands still for ever."""
    mark, bell = service.marker(), service.bell()
    script = f"{bell.ring}; sleep {mark} & sleep {mark}"
    jobs = [service.bash("app", script, "--read-only") for _ in range(3)]
    bell.wait(3)
    verbs = [("cancel", "pause"), ("pause", "cancel"), ("pause", "cancel")][turn]
    calls = [[verb, job] for job in jobs for verb in verbs]
    for words, done in zip(calls, together(service, calls), strict=True):
        # A pause that comes too late changes nothing, and says so.
        assert done.status == 0 or words[0] == "pause", done
        if done.status != 0:
            assert done.status == 3
            assert re.search("is being stopped|has ended", done.err)
    for end in service.wait(*jobs):
        assert (end["state"], end["forced"]) == ("cancelled", False)
    assert survivors(mark) == []
