"""Many jobs by one command: a chain that is retried, a repository that is ended."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService


def test_one_command_retries_a_failed_chain(service: LiveService) -> None:
    """Q-05: dependents reach their end at once, and one command retries the chain."""
    gate = service.root / "repaired"
    first = service.bash("app", f"test -e {gate}", "--label", "chain")
    second = service.submit("--repo", "app", "--after", first, "--", "true")
    third = service.submit("--repo", "app", "--after", second, "--", "true")
    ends = service.wait(first, second, third)
    assert [end["state"] for end in ends] == [
        "failed",
        *["human_attention_required"] * 2,
    ]
    assert f"it runs after {first}, which is failed" in service.why(second)
    assert f"it runs after {second}" in service.why(third)

    refused = service.cli("retry", second)
    assert refused.status == 3
    assert f"retry {first} too" in refused.err

    gate.touch()
    made = service.cli("retry", "--failed", status=0).out.split()
    views = service.wait(*made)
    assert [view["state"] for view in views] == ["succeeded"] * 3
    assert [view["retry_of"] for view in views] == [first, second, third]
    assert [view["after"] for view in views] == [[], made[:1], made[1:2]]
    again = service.cli("retry", "--failed")
    assert (again.status, again.out) == (3, "")
    assert "no job that was not retried yet matches --failed" in again.err
    assert service.show(first)["state"] == "failed"


def test_a_retry_outlives_the_service_that_accepted_it(service: LiveService) -> None:
    job = service.bash("app", "exit 1")
    service.end_of(job)
    gate = service.gate()
    blocker = service.bash("app", gate.wait)
    service.until(blocker, "job_running")
    [made] = service.cli("retry", job, status=0).out.split()
    service.kill()
    service.start()
    view = service.show(made)
    assert view["retry_of"] == job
    gate.open()
    assert service.end_of(made)["exit_code"] == 1


def test_the_jobs_of_one_repository_are_ended_by_one_command(
    service: LiveService,
) -> None:
    service.add("lib")
    mark = service.marker()
    here = [service.submit("--repo", "app", "--", "sleep", mark) for _ in range(3)]
    there = service.submit("--repo", "lib", "--", "sleep", mark)
    service.until(there, "job_running")
    service.cli("cancel", "--repo", "app", status=0)
    assert {end["state"] for end in service.wait(*here)} == {"cancelled"}
    assert service.show(there)["state"] == "running"
    done = service.cli("cancel", "--repo", "app")
    assert (done.status, done.out) == (3, "")
    listed = json.loads(service.cli("jobs", "--mine", "--active", "--json").out)
    assert [job["id"] for job in listed] == [there]
    service.cli("cancel", there, status=0)


def test_wait_passes_on_how_a_job_ended(service: LiveService) -> None:
    """C-03: the job's own code, a signal as a shell tells it, the documented rest."""
    for script, options, code in (
        ("exit 0", (), 0),
        ("exit 7", (), 7),
        ("exit 255", (), 255),
        ("kill -9 $$", (), 128 + signal.SIGKILL),
        (f"sleep {service.marker()}", ("--timeout", "1s"), 128 + signal.SIGTERM),
    ):
        job = service.bash("app", script, *options)
        done = service.cli("wait", "--pass-code", job)
        assert done.status == code, (script, done)
        assert service.cli("wait", job).status == (0 if code == 0 else 1)
    held = service.submit("--repo", "app", "--", "sleep", service.marker())
    service.until(held, "job_running")
    assert service.cli("wait", "--timeout", "0.1s", held).status == 5
    service.cli("cancel", held, status=0)
    done = service.cli("wait", "--pass-code", held)
    assert done.status == 128 + signal.SIGTERM
    blocked = service.submit("--repo", "app", "--after", held, "--", "true")
    assert service.cli("wait", "--pass-code", blocked).status == 1
    assert os.path.exists(f"/proc/{service.pid}")
