"""Questions of agents on a real service, across its end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.testing.agents import FakeAgent
    from tests.acceptance.service import LiveService


def test_a_question_waits_over_a_crash_and_its_answer_goes_on_in_the_session(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, fake = claude
    fake.play("asks", text="Which one?")
    job = service.submit("--repo", "app", "--agent", "claude", "--prompt", "Go.")
    service.until(job, "job_waiting_for_approval")
    service.kill()
    offline = service.cli("inbox", status=0)
    assert f"question:{job}:1" in offline.out
    service.start()
    why = service.cli("why", job, status=0).out
    assert "It asks: Which one? (yes / no); forge-actors answer" in why
    refused = service.cli("answer", job)
    assert (refused.status, "the answer is TEXT" in refused.err) == (2, True)
    service.cli("answer", job, "-", stdin=b"The second.", status=0)
    again = service.cli("answer", job, "The first.")
    assert (again.status, "asks nothing" in again.err) == (3, True)
    end = service.end_of(job)
    assert (end["state"], end["attempt"], end["refused"]) == ("succeeded", 2, 1)
    assert end["agent"]["text"] == f"The second. [{end['agent']['session']}]"
    assert json.loads(service.cli("inbox", "--json", status=0).out)["items"] == []
    assert "The second." not in service.cli("events", "--json", status=0).out


def test_a_question_that_is_denied_ends_its_job(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, fake = claude
    fake.play("asks", text="Publish it?")
    jobs = [
        service.submit("--repo", "app", "--agent", "claude", "--prompt", "Go.")
        for _ in range(2)
    ]
    for job in jobs:
        service.until(job, "job_waiting_for_approval")
    service.cli("deny", jobs[0], "--reason", "not on a Friday", status=0)
    service.cli("approve", jobs[1], status=0)
    denied, approved = service.wait(*jobs)
    assert (denied["state"], denied["error"]["code"]) == ("failed", "DENIED")
    assert denied["error"]["message"] == "not on a Friday"
    assert approved["agent"]["text"].startswith("Yes, go on. [")
