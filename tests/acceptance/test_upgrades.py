"""An upgrade while jobs run: none is interrupted, and one release serves at a time."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from forge_actors.client.sync import Service as Connection
from tests.acceptance.bench import wait_until_ended
from tests.acceptance.programs import Manager, Program

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

JOBS = 50
MANY = f"[limits]\nworkers = {JOBS + 2}\n"


QUICK = {"repo": "app", "argv": ["true"], "read_only": True}


@pytest.fixture
def service(make_service: Callable[[str], LiveService]) -> LiveService:
    return make_service(MANY)


@pytest.fixture
def old(service: LiveService) -> Program:
    return Program(service.root / "old")


@pytest.fixture
def new(service: LiveService) -> Program:
    return Program(service.root / "new", other=True)


def test_an_upgrade_and_the_way_back_interrupt_none_of_fifty_jobs(
    service: LiveService, old: Program, new: Program
) -> None:
    """D-14"""
    gate, bell = service.gate(), service.bell()
    ran = service.root / "ran"
    script = (
        f"echo $FORGE_JOB_ID >> {ran}; echo before; {bell.ring};"
        f" {gate.wait}; echo after; exit $1"
    )
    wanted = [
        {
            "repo": "app",
            "argv": ["bash", "-c", script, "job", str(number)],
            "read_only": True,
            "timeout": "10m",
        }
        for number in range(JOBS)
    ]
    with closing(Manager(service, old)) as manager:
        manager.wait_ready()
        service.add("app")
        jobs = service.batch(wanted)
        bell.wait(JOBS)
        pids = {job: service.until(job, "job_running").data["pid"] for job in jobs}
        waits = service.bash("app", "true", "--read-only", "--after", jobs[0])
        agent = service.agent_pid
        flow: list[str] = []
        for revision, program in ((2, new), (3, old)):
            flow += service.batch([QUICK] * 200)  # to be begun all the time
            hand_over(service, manager, program, revision)
            assert service.agent_pid == agent
            for job, pid in pids.items():
                shown = service.show(job)
                assert (shown["state"], shown["pid"]) == ("running", pid)
        assert manager.statuses == [75, 75]
        gate.open()
        ends = service.wait(*jobs)
        assert [end["exit_code"] for end in ends] == list(range(JOBS))
        assert {end["attempt"] for end in ends} == {1}
        assert {end["state"] for end in service.wait(waits, *flow)} == {"succeeded"}
        assert sorted(ran.read_text().split()) == sorted(jobs)
        assert {service.log(job) for job in jobs[:5]} == {b"before\nafter\n"}
        check_history(service)
        service.cli("stop", status=0)
        assert manager.wait() == 0


def hand_over(
    service: LiveService, manager: Manager, program: Program, revision: int
) -> None:
    """Make another release the active one, and wait until it serves."""
    before = service.pid
    manager.install(program)
    answer = json.loads(program(service, "release", "activate", "--json").out)
    assert (answer["changed"], answer["revision"]) == (True, revision)
    assert answer["service"]["running"] >= JOBS
    assert wait_until_ended(before)
    manager.wait_ready()
    status = service.json("status")
    assert status["ready"] is True
    assert status["readiness"]["releaseCoherence"] == "pass"
    release = status["service"]["release"]
    assert (release["id"], release["revision"]) == (answer["id"], revision)


def check_history(service: LiveService) -> None:
    """From the moment a service has seen the change it begins nothing more."""
    place: dict[str, list[int]] = {}
    for entry in service.events():
        place.setdefault(entry.kind, []).append(entry.seq)
    starts = place["runtime_started"]
    for seen, stopped, start in zip(
        place["release_superseded"], place["runtime_stopped"], starts[1:], strict=True
    ):
        assert seen < stopped < start
        assert not [seq for seq in place["job_dispatched"] if seen < seq < start]
        assert [seq for seq in place["job_dispatched"] if seq > start]


def test_only_the_active_release_may_start(
    service: LiveService, old: Program, new: Program
) -> None:
    with closing(Manager(service, old)) as manager:
        manager.wait_ready()
        service.cli("stop", status=0)
        assert manager.wait() == 0
    refused = new(service, "serve", status=3)
    assert refused.err.count("\n") == 1
    for words in (str(old.root), str(new.root), "forge-actors release activate"):
        assert words in refused.err
    shown = json.loads(new(service, "release", "show", "--json").out)
    assert shown["active"]["path"] == str(old.root / "forge_actors")
    assert shown["program"]["path"] == str(new.root / "forge_actors")
    assert shown["service"] is None
    new(service, "release", "activate")
    done = old(service, "serve", "--detach", status=3)
    assert "is the active release of" in done.err
    new(service, "serve", "--detach")
    service.find()
    assert service.json("release", "show")["service"]["revision"] == 2


def test_an_upgrade_in_its_place_becomes_the_active_release_by_its_start(
    service: LiveService, old: Program
) -> None:
    old(service, "serve", "--detach")
    service.find()
    before = service.json("status")["service"]["release"]
    service.cli("stop", status=0)
    (old.root / "forge_actors" / "upgraded.py").touch()
    old(service, "serve", "--detach")
    service.find()
    after = service.json("status")["service"]["release"]
    assert (before["revision"], after["revision"]) == (1, 2)
    assert before["path"] == after["path"]
    assert before["id"] != after["id"]
    told = [e.data for e in service.events() if e.kind == "release_activated"]
    assert [data["revision"] for data in told] == [1, 2]
    assert told[1]["previous"] == before["id"]
    assert "is the active one of" in (service.home / "service.log").read_text()


def test_a_damaged_release_file_keeps_a_service_from_starting_not_from_running(
    service: LiveService,
) -> None:
    service.start()
    service.add("app")
    file = service.home / "release.json"
    file.write_text("{")
    assert service.end_of(service.bash("app", "true"))["state"] == "succeeded"
    Connection(str(service.home)).post("release", "check")
    assert service.json("status")["readiness"]["releaseCoherence"] == "not_observed"
    service.cli("stop", status=0)
    refused = service.cli("serve", status=3)
    assert "move it away" in refused.err
    assert file.read_text() == "{"
    file.rename(service.root / "moved")
    service.cli("release", "activate", status=0)
    service.start()
