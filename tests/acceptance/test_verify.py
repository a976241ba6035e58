"""The check of an agent's work, on a real service that is killed."""

from __future__ import annotations

import json
import os
from itertools import islice
from typing import TYPE_CHECKING

from tests.acceptance.bench import wait_until_ended

if TYPE_CHECKING:
    from forge_actors.testing.agents import FakeAgent
    from tests.acceptance.service import Entry, LiveService


def running(service: LiveService, job: str, times: int) -> Entry:
    """The start of this attempt of a job, as soon as it is told."""
    starts = (e for e in service.follow() if (e.job, e.kind) == (job, "job_running"))
    return next(islice(starts, times - 1, None))


def test_a_check_that_fails_while_no_service_is_there_begins_one_round(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, fake = claude
    fake.play("echoes")
    gate, tries = service.root / "pipe", service.root / "tries"
    os.mkfifo(gate)
    # Passes from its second run on.
    check = f"echo MARK >> {tries}; cat {tries}; test $(wc -l < {tries}) -ge 2 ||"
    check += f" {{ cat {gate}; false; }}"
    job = service.submit(
        *("--repo", "app", "--agent", "claude", "--prompt", "Go."),
        *("--verify", check, "--verify-timeout", "5m", "--verify-rounds", "2"),
    )
    service.until(job, "job_waiting_for_heavy_check")
    pid = running(service, job, 2).data["pid"]
    service.kill()
    gate.write_bytes(b"")
    assert wait_until_ended(pid)
    service.start()
    end = service.end_of(job)
    assert (end["state"], end["attempt"]) == ("succeeded", 4)
    verify = end["verify"]
    assert (verify["round"], verify["rounds"], verify["checks"]) == (1, 2, [2, 4])
    assert verify["timeout"] == 300.0
    assert "MARK" in end["agent"]["text"]
    assert end["agent"]["text"].endswith(f"[{end['agent']['session']}]")
    assert service.log(job) == b"MARK\nMARK\n"
    usage = service.json("usage", "--by", "job")
    assert [(g["key"], g["attempts"]) for g in usage["groups"]] == [(job, 2)]


def test_a_check_that_is_killed_with_its_agent_is_run_again(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, fake = claude
    fake.play("success", file="made.txt")
    gate, once = service.root / "pipe", service.root / "once"
    os.mkfifo(gate)
    check = f"if test -e {once}; then cat made.txt; else touch {once}; cat {gate}; fi"
    job = service.submit(
        *("--repo", "app", "--agent", "claude", "--prompt", "Go.", "--verify", check)
    )
    running(service, job, 2)
    service.crash()
    service.start()
    end = service.end_of(job)
    assert (end["state"], end["attempt"]) == ("succeeded", 3)
    assert (end["verify"]["round"], end["verify"]["checks"]) == (0, [2, 3])
    assert service.log(job) == b"made\n"


def test_a_check_is_asked_for_in_a_batch(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, _ = claude
    ask = {"repo": "app", "argv": [], "agent": "claude", "prompt": "Go."}
    jobs = service.batch([{**ask, "verify": "exit 4", "verify_rounds": 0}, ask])
    failed, good = service.wait(*jobs)
    assert (failed["state"], good["state"]) == ("failed", "succeeded")
    assert failed["error"]["code"] == "VERIFY_FAILED"
    assert good["verify"] is None
    page = service.cli("show", failed["id"], status=0).out
    assert "VERIFY_FAILED: its check failed, exit status 4" in page
    line = json.dumps({"repo": "app", "argv": ["true"], "verify": "true"}).encode()
    refused = service.cli("submit", "--batch", "-", stdin=line)
    assert (refused.status, "verify" in refused.err) == (2, True)
