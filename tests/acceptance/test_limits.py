"""Providers that refuse jobs, on a real service with programs that play agents."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.agents import FakeAgent, install

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

#: Two hundred jobs, of which some return each second.
MANY = """
[limits]
workers = 8
agents = 8
repository_workers = 8
[providers.claude]
limit = 6
[scheduling]
return_every = "50ms"
"""
JOBS = 200
#: For all of them to end, once their account is open.
SECONDS = 200.0


@pytest.fixture
def make(
    make_service: Callable[[str], LiveService], monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], tuple[LiveService, FakeAgent]]:
    def started(settings: str) -> tuple[LiveService, FakeAgent]:
        service = make_service(settings)
        fake = install(service.root / "bin", "claude")
        path = f"{fake.path.parent}{os.pathsep}{os.environ['PATH']}"
        monkeypatch.setenv("PATH", path)
        service.start()
        service.add("app")
        return service, fake

    return started


def agent_job(service: LiveService, *options: str) -> str:
    words = ("--repo", "app", "--agent", "claude", "--prompt", "Go.", "--read-only")
    return service.submit(*words, "--no-isolate", *options)


def test_two_hundred_parked_jobs_return_at_the_reset_and_none_twice(
    make: Callable[[str], tuple[LiveService, FakeAgent]],
) -> None:
    service, fake = make(MANY)
    reset = int(time.time()) + 20
    fake.play("limit", reset=reset)
    job = {"repo": "app", "argv": [], "agent": "claude", "prompt": "Go."}
    job |= {"read_only": True, "isolate": False}
    jobs = service.batch([job] * JOBS)
    service.until(None, "provider_closed")
    fake.play("success")
    ended = 0
    for entry in service.follow():
        ended += entry.kind == "job_succeeded"
        if ended == JOBS:
            break
        assert time.time() < reset + SECONDS, f"{ended} have ended"
    ends = service.wait(*jobs)
    assert {end["state"] for end in ends} == {"succeeded"}
    events = service.events()
    starts = [e for e in events if e.kind == "job_dispatched"]
    # Those that were refused run a second time, and nobody else does.
    refused = [
        e.job for e in events if e.kind == "job_waiting_for_limit" and "error" in e.data
    ]
    assert len(starts) == JOBS + len(refused)
    assert 1 <= len(refused) <= 6
    assert sum(end["refused"] for end in ends) == len(refused)
    closed = next(e.seq for e in events if e.kind == "provider_closed")
    opened = next(e for e in events if e.kind == "provider_opened")
    assert not [e for e in starts if closed < e.seq < opened.seq]
    first = next(e for e in starts if e.seq > opened.seq)
    assert reset <= first.at <= reset + 10.0
    running = 0
    for event in events:
        if event.kind == "job_dispatched":
            running += 1
            assert running <= 6
        elif event.kind in ("job_succeeded", "job_waiting_for_limit"):
            running -= event.kind == "job_succeeded" or "error" in event.data


def test_a_wrong_login_is_found_once_and_a_person_lets_the_jobs_go_on(
    make: Callable[[str], tuple[LiveService, FakeAgent]],
) -> None:
    service, fake = make("")
    fake.play("auth")
    first = agent_job(service)
    service.until(None, "provider_closed")
    rest = [agent_job(service) for _ in range(5)]
    status = service.json("status")["providers"]["claude"]
    assert status["state"] == "closed"
    assert status["closed"]["reason"] == "auth"
    assert (status["closed"]["until"], status["closed"]["job"]) == (None, first)
    assert "not logged in" in service.cli("status", status=0).out
    for job in (first, *rest):
        assert service.show(job)["state"] == "queued"
        assert "resume --provider claude" in service.why(job)
    # It is as it was for the next service.
    service.kill()
    service.start()
    assert service.json("status")["providers"]["claude"]["state"] == "closed"
    fake.play("success")
    resumed = service.cli("resume", "--provider", "claude", status=0)
    assert resumed.out == "claude is open again: its jobs go on\n"
    assert service.cli("resume", "--provider", "claude").out == "nothing is paused\n"
    ends = service.wait(first, *rest)
    assert {end["state"] for end in ends} == {"succeeded"}
    assert [end["refused"] for end in ends] == [1, 0, 0, 0, 0, 0]
