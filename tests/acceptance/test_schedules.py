"""Schedules of a real service, across its end."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService


def wait_until_decided(service: LiveService, name: str, count: int) -> None:
    """Wait until so many windows of a schedule were decided, since the beginning."""
    decided = (
        e
        for e in service.follow()
        if e.kind == "schedule_decided" and e.data["schedule"] == name
    )
    # On a machine that is busy a job may last until the next time.
    usual = {"run", "missed", "overlapped"}
    found = {e.data["decision"]: e.data["reason"] for e in islice(decided, count)}
    assert set(found) <= usual, found


def windows_that_ran(service: LiveService, name: str) -> list[str]:
    shown = service.json("schedule", "show", name, "--count", "500")
    ran = [one["window"] for one in shown["occurrences"] if one["decision"] == "run"]
    assert len(ran) == len(set(ran)) == shown["runs"]
    return ran


def test_each_time_has_one_job_whatever_is_killed(service: LiveService) -> None:
    service.add("app")
    words = ("schedule", "add", "tick", "--repo", "app", "--every", "1s")
    service.cli(*words, "--misfire", "skip", "--", "true", status=0)
    after = ("schedule", "add", "after", "--repo", "app", "--on", "ended:schedule:tick")
    catch_up = ("--misfire", "all", "--catch-up-most", "100", "--overlap", "queue")
    service.cli(*after, *catch_up, "--", "true", status=0)
    for count in range(1, 4):
        wait_until_decided(service, "tick", count)
        service.kill()
        service.start()
    wait_until_decided(service, "tick", 4)
    service.cli("schedule", "pause", "tick", status=0)
    ran = windows_that_ran(service, "tick")
    assert len(ran) >= 2
    # The end of each of them is answered once, also by the next service.
    wait_until_decided(service, "after", len(ran))
    jobs = service.json("jobs", "--repo", "app")
    ticks = [job["id"] for job in jobs if job["origin"] == "schedule:tick"]
    assert len(ticks) == len(ran)
    answered = windows_that_ran(service, "after")
    assert sorted(answered) == sorted(f"end-{job}" for job in ticks)
    assert len(jobs) == len(ticks) + len(answered)
    times = service.cli("schedule", "next", "tick", "--count", "3", status=0).out
    assert len(times.splitlines()) == 3


def test_a_job_for_later_comes_and_its_schedule_goes(service: LiveService) -> None:
    service.add("app")
    name = service.cli("submit", "--repo", "app", "--in", "1s", "--", "true", status=0)
    events = service.follow()
    [job] = [next(e for e in events if e.kind == "schedule_decided").job]
    assert job is not None
    assert service.end_of(job)["exit_code"] == 0
    removed = next(e for e in events if e.kind == "schedule_removed")
    assert removed.data["schedule"] == name.out.strip()
    assert service.json("schedule", "list") == []


def test_bad_schedules_are_refused_and_a_removed_repository_takes_its_own(
    service: LiveService,
) -> None:
    service.add("app")
    add = ("schedule", "add", "x", "--repo", "app")
    for when, said in (
        (("--cron", "0 0 30 2 *"), "cron"),
        (("--cron", "@daily", "--timezone", "Mars/Base"), "timezone"),
        (("--every", "0.1s"), "every"),
        (("--every", "1h", "--misfire", "all"), "misfire"),
        (("--every", "1h", "--claim", "nonsense"), "job.claims"),
        (("--at", "tomorrow"), "at"),
        (("--at", "2020-01-02T03:04"), "at"),
        (("--at", "9999-12-31T23:59"), "at"),
    ):
        done = service.cli(*add, *when, "--", "true", status=2)
        assert f": {said}" in done.err, done.err
        assert done.err.count("\n") == 1
    service.cli(*add, "--manual", "--", "true", status=0)
    told = json.loads(service.cli("schedule", "run", "x", "--json", status=0).out)
    decided = (e for e in service.follow() if e.kind == "schedule_decided")
    assert next(decided).data["occurrence"] == told["id"]
    [job] = service.json("jobs", "--repo", "app")
    service.end_of(job["id"])
    service.cli("repo", "remove", "app", status=0)
    assert service.json("schedule", "list") == []
