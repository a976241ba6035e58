"""A script asks whether it still holds its job, before and after it was replaced."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.service import PROGRAM, Done, call

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.service import LiveService


def check(service: LiveService, attempt: int, fence: int, job: str) -> Done:
    words = ("fence", "check", "--job", job)
    return service.cli(*words, "--attempt", str(attempt), "--fence", str(fence))


def test_an_attempt_that_was_replaced_by_a_retry_does_not_deploy(
    service: LiveService,
) -> None:
    """The first attempt leaves a deployment behind that comes late."""
    place = service.root
    first, second, late = service.bell(), service.bell(), service.bell()
    fails, deploys, ends = service.gate(), service.gate(), service.gate()
    script = f"""
        deploy() {{ {PROGRAM} fence check > $1 2>&1 && touch $1.deployed; }}
        deploy {place}/early.$FORGE_ATTEMPT
        if [ $FORGE_ATTEMPT = 1 ]; then
            (exec < /dev/null > /dev/null 2>&1
             {deploys.wait}; deploy {place}/late; echo $? > {place}/status
             {late.ring}) &
            {first.ring}; {fails.wait}; exit 1
        fi
        {second.ring}; {ends.wait}
    """
    job = service.bash(
        "app", script, "--replay", "always", "--max-attempts", "2", "--keep-leftovers"
    )
    first.wait()
    fence = service.show(job)["fence"]
    assert check(service, 1, fence, job).status == 0
    fails.open()
    second.wait()
    deploys.open()
    late.wait()
    for attempt in (1, 2):
        said = (place / f"early.{attempt}").read_text()
        assert said.startswith(f"attempt {attempt} of job {job} is the current one")
        assert (place / f"early.{attempt}.deployed").exists()
    assert (place / "status").read_text() == "3\n"
    assert not (place / "late.deployed").exists()
    assert (place / "late").read_text() == (
        f"forge-actors: FENCING_TOKEN_STALE: attempt 1 with the fence {fence} is not"
        f" the last one of job {job}, which is attempt 2 with the fence {fence + 1}\n"
    )
    assert check(service, 2, fence + 1, job).status == 0
    ends.open()
    assert service.end_of(job)["state"] == "succeeded"
    over = check(service, 2, fence + 1, job)
    assert (over.status, over.out) == (3, "")
    assert over.err.endswith(f"attempt 2 is over: job {job} is succeeded\n")
    # The store says the same when nobody serves.
    service.terminate()
    assert check(service, 2, fence + 1, job)[:3] == over[:3]


def test_a_job_that_outlives_its_service_knows_that_it_holds_on(
    service: LiveService,
) -> None:
    gate, begun, asked = service.gate(), service.bell(), service.bell()
    said = service.root / "said"
    script = f"{begun.ring}; {gate.wait}; {PROGRAM} fence check > {said}; {asked.ring}"
    job = service.bash("app", script)
    begun.wait()
    service.kill()
    gate.open()
    asked.wait()
    assert said.read_text().startswith(f"attempt 1 of job {job} is the current one")
    service.start()
    assert service.end_of(job)["state"] == "succeeded"


def test_a_job_that_is_stopped_or_paused_does_not_hold_on(
    service: LiveService,
) -> None:
    bell, gate = service.bell(), service.gate()
    script = (
        f"trap '{bell.ring}; {gate.wait}; exit' TERM; {bell.ring}; cat {gate.path}.x"
    )
    os.mkfifo(f"{gate.path}.x")
    job = service.bash("app", script, "--grace", "30s")
    bell.wait()
    service.pid_of(job)
    fence = service.show(job)["fence"]
    assert check(service, 1, fence, job).status == 0
    service.cli("pause", job, status=0)
    paused = check(service, 1, fence, job)
    assert (paused.status, paused.err) == (3, f"forge-actors: job {job} is paused\n")
    service.cli("resume", job, status=0)
    assert check(service, 1, fence, job).status == 0
    service.cli("cancel", job, status=0)
    stopped = check(service, 1, fence, job)
    assert stopped.status == 3
    assert stopped.err == f"forge-actors: job {job} is being stopped\n"
    gate.open()
    assert service.end_of(job)["state"] == "cancelled"


def test_what_cannot_be_known_is_not_guessed(service: LiveService) -> None:
    gate, bell = service.gate(), service.bell()
    job = service.bash("app", f"{bell.ring}; {gate.wait}")
    bell.wait()
    service.pid_of(job)
    fence = service.show(job)["fence"]
    words = ("--job", job, "--attempt", "1", "--fence", str(fence), "--json")
    told = json.loads(service.cli("fence", "check", *words, status=0).out)
    assert told == {
        "job": job,
        "attempt": 1,
        "fence": fence,
        "current": True,
        "code": None,
        "reason": None,
    }
    gate.open()
    service.end_of(job)
    service.terminate()
    store = service.home / "store.sqlite"
    store.write_bytes(b"no store at all" * 1000)
    done = service.cli("fence", "check", *words, status=4)
    assert (done.out, "cannot be read" in done.err) == ("", True)
    store.unlink()
    assert service.cli("fence", "check", *words, status=4).out == ""


@pytest.mark.parametrize(
    ("options", "environ"),
    [
        ((), {}),
        (("--job", "4f2k9x0q1v7m3n8p2rs"), {"FORGE_ATTEMPT": "1", "FORGE_FENCE": "1"}),
        ((), {"FORGE_JOB_ID": "4f2k9x0q1v7m3n8p2rs", "FORGE_ATTEMPT": "1"}),
        (("--job", "j", "--attempt", "one", "--fence", "1"), {}),
        (("--job", "j", "--attempt", "1", "--fence", "0"), {}),
        (("--job", "j", "--attempt", "1", "--fence", "-1"), {}),
        (("--job", "", "--attempt", "1", "--fence", "1"), {}),
        (("--job", "j", "--attempt", "²", "--fence", "1"), {}),
    ],
)
def test_an_attempt_that_is_not_named_whole_is_a_slip(
    options: tuple[str, ...],
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    done = call("--home", tmp_path, "fence", "check", *options, status=2)
    assert (done.out, done.err.count("\n")) == ("", 1)
