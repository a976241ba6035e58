"""EPICs that a service works through: over its death, and as jobs like others."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

from forge_actors.client.sync import Service

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

PLAN = """\
title = "The importer"
[[issue]]
number = 1
title = "Parse"
[[issue]]
number = 2
title = "Load"
blocked_by = [1]
[[issue]]
number = 3
title = "Show"
"""
#: What implements: issue 1 rings a bell and waits at a gate.
SETTINGS = """\
[epic]
poll_interval = "1s"
[epic.phases.implement]
argv = ["sh", "-c", "test $EPIC_ISSUE != 1 || ({ring}; {wait}); echo x > done"]
"""


def run_of(service: LiveService, name: str) -> dict[str, Any]:
    found: dict[str, Any] = Service(str(service.home)).get("epics", name)
    return found


def children(run: dict[str, Any]) -> dict[int, dict[str, Any]]:
    return {child["number"]: child for child in run["view"]["children"]}


def test_a_service_that_is_killed_goes_on_with_its_epic(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    gate, bell = service.gate(), service.bell()
    with (service.home / "settings.toml").open("a") as file:
        file.write(SETTINGS.format(ring=bell.ring, wait=gate.wait))
    plan = service.root / "plan.toml"
    plan.write_text(PLAN)
    service.start()
    repository = service.add("app")
    asked = {"epic": str(plan), "repo": "app", "request_id": "once"}
    client = Service(str(service.home))
    run = client.post("epics", body=asked)
    assert client.post("epics", body=asked)["id"] == run["id"]
    bell.wait()
    service.until(None, "epic_issue_ended")
    seen = run_of(service, run["id"])
    states = {number: child["state"] for number, child in children(seen).items()}
    assert states == {1: "running", 2: "blocked", 3: "done"}
    job = children(seen)[1]["job"]
    shown = service.show(job)
    assert (shown["state"], shown["work"]) == ("running", run["id"])
    worker = shown["pid"]

    service.kill()
    service.start()
    # The worker has the repository, and the next scheduler waits for its end.
    service.until(None, "epic_waiting")
    assert run_of(service, run["id"])["state"] == "waiting"
    assert service.show(job)["pid"] == worker
    plan.write_text(PLAN.replace("number = 2", "number = 2\nstate = 'closed'"))
    gate.open()
    ended = client.post("epics", run["id"], "wait", body={})["epic"]
    assert (ended["state"], ended["reason"]) == ("ended", "nothing-admissible")
    assert service.end_of(job)["state"] == "succeeded"
    listed = subprocess.check_output(
        ["git", "-C", repository, "branch", "--list", "--format=%(refname)", "forge/*"]
    )
    assert [name.rsplit(b"-", 1)[1] for name in listed.split()] == [b"1", b"3"]


def test_a_run_that_is_stopped_interrupts_its_workers_and_goes_on_later(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    gate, bell = service.gate(), service.bell()
    with (service.home / "settings.toml").open("a") as file:
        file.write(SETTINGS.format(ring=bell.ring, wait=gate.wait))
    plan = service.root / "plan.toml"
    plan.write_text(PLAN)
    service.start()
    service.add("app")
    client = Service(str(service.home))
    asked: dict[str, Any] = {"epic": str(plan), "repo": "app", "max_parallel": 1}
    run = client.post("epics", body=asked)
    bell.wait()
    job = children(run_of(service, run["id"]))[1]["job"]
    client.post("epics", run["id"], "stop", body={"mode": "now"})
    ended = client.post("epics", run["id"], "wait", body={})["epic"]
    assert (ended["state"], ended["reason"]) == ("ended", "stopped")
    assert service.end_of(job)["state"] == "cancelled"
    assert children(ended)[1]["phase"] == "implement"
    # No other issue has begun, and no job of one waits.
    assert [each["id"] for each in service.json("jobs")] == [job]

    gate.open()
    again = client.post("epics", body={**asked, "resume": True})
    ended = client.post("epics", again["id"], "wait", body={})["epic"]
    assert ended["reason"] == "nothing-admissible"
    states = {number: each["state"] for number, each in children(ended).items()}
    assert states == {1: "done", 2: "blocked", 3: "done"}
    assert children(ended)[1]["generation"] == 2
