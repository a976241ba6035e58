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


@pytest.fixture
def service(make_service: Callable[[str], LiveService]) -> LiveService:
    return make_service(MANY)


@pytest.fixture
def old(service: LiveService) -> Program:
    return Program(service.root / "old")


@pytest.fixture
def new(service: LiveService) -> Program:
    return Program(service.root / "new", other=True)


def test_an_upgrade_interrupts_none_of_fifty_jobs(
    service: LiveService, old: Program, new: Program
) -> None:
    gate, bell = service.gate(), service.bell()
    ran = service.root / "ran"
    with closing(Manager(service, old)) as manager:
        manager.wait_ready()
        service.add("app")
        script = (
            f"echo $FORGE_JOB_ID >> {ran}; echo before; {bell.ring};"
            f" {gate.wait}; echo after; exit $1"
        )
        jobs = service.batch(
            [
                {
                    "repo": "app",
                    "argv": ["bash", "-c", script, "job", str(number)],
                    "read_only": True,
                    "timeout": "10m",
                }
                for number in range(JOBS)
            ]
        )
        bell.wait(JOBS)
        pids = {job: service.until(job, "job_running").data["pid"] for job in jobs}
        waits = service.bash("app", "true", "--read-only", "--after", jobs[0])
        first, agent = service.pid, service.agent_pid
        manager.install(new)
        answer = json.loads(new(service, "release", "activate", "--json").out)
        assert (answer["changed"], answer["revision"]) == (True, 2)
        assert answer["service"]["running"] == JOBS
        assert wait_until_ended(first)
        manager.wait_ready()
        assert manager.statuses == [75]
        assert service.agent_pid == agent
        status = service.json("status")
        assert status["readiness"]["releaseCoherence"] == "pass"
        assert status["service"]["release"]["id"] == answer["id"]
        assert status["service"]["release"]["revision"] == 2
        for job, pid in pids.items():
            shown = service.show(job)
            assert (shown["state"], shown["pid"]) == ("running", pid)
        gate.open()
        ends = service.wait(*jobs)
        assert [end["exit_code"] for end in ends] == list(range(JOBS))
        assert {end["attempt"] for end in ends} == {1}
        assert service.end_of(waits)["state"] == "succeeded"
        assert sorted(ran.read_text().split()) == sorted(jobs)
        assert {service.log(job) for job in jobs[:5]} == {b"before\nafter\n"}
        entries = service.events()
        kinds = [entry.kind for entry in entries if entry.job is None]
        place = kinds.index("release_superseded")
        assert kinds[place:].index("runtime_stopped") < kinds[place:].index(
            "runtime_started"
        )
        # From the moment it had seen the change it began nothing more.
        seen = next(e.seq for e in entries if e.kind == "release_superseded")
        stop = [e.seq for e in entries if e.kind == "runtime_started"][1]
        began = [e.seq for e in entries if e.kind == "job_dispatched"]
        assert not [seq for seq in began if seen < seq < stop]
        service.cli("stop", status=0)
        assert manager.wait() == 0


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
