"""Nobody waits without a cause that is told: which one, and who is in the way."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.service import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.acceptance.service import LiveService

LIMITS = "[limits]\nworkers = 8\nheavy_checks = 1\nagents = 2\n"
PROVIDER = "[providers.local]\nlimit = 1\n"


def check_cause(
    service: LiveService,
    job: str,
    kind: str,
    words: str,
    holders: Sequence[str] = (),
    resource: str | None = None,
) -> None:
    """Whoever asks is told the same: the record, the sentence and the table."""
    for waiting in (
        service.show(job)["waiting"],
        service.json("why", job)["waiting"],
        next(j["waiting"] for j in service.json("jobs") if j["id"] == job),
    ):
        assert (waiting["kind"], waiting["holders"]) == (kind, list(holders))
        assert waiting["resource"] == resource
    text = service.why(job)
    assert words in text
    for holder in holders:
        assert holder in text
    [line] = [
        line
        for line in service.cli("jobs", status=0).out.splitlines()
        if line.startswith(job[-6:])
    ]
    assert kind in line
    if holders:
        assert f"{kind} ({holders[0][-6:]}" in line


@pytest.fixture
def busy(make_service: Callable[[str], LiveService]) -> LiveService:
    service = make_service(LIMITS + PROVIDER)
    service.start()
    service.add("app")
    service.add("lib")
    return service


def test_a_job_that_lacks_a_token_says_which_and_who_has_it(busy: LiveService) -> None:
    """C-07: a provider, a heavy check, an agent."""
    gate, bell = busy.gate(), busy.bell()
    script = f"{bell.ring}; {gate.wait}"
    free = "--read-only"
    local = busy.bash("app", script, free, "--provider", "local")
    heavy = busy.bash("app", script, free, "--kind", "check")
    bell.wait(2)
    waits = busy.bash("app", "true", free, "--provider", "local")
    check_cause(busy, waits, "token", "1 of 1 local", [local], "provider:local")
    waits = busy.bash("lib", "true", free, "--kind", "check")
    check_cause(busy, waits, "token", "1 of 1 heavy", [heavy], "heavy_checks")
    agent = busy.bash("app", script, free, "--kind", "agent-run")
    bell.wait()
    waits = busy.bash("lib", "true", free, "--kind", "agent-run")
    check_cause(busy, waits, "token", "2 of 2 agents", [local, agent], "agents")
    gate.open()


def test_a_job_that_may_not_start_beside_another_names_it(busy: LiveService) -> None:
    """C-07: a claim, a dependency, and who is there first."""
    gate, bell = busy.gate(), busy.bell()
    claim = ("--claim", "exclusive:repo-content:*")
    holder = busy.bash("app", f"{bell.ring}; {gate.wait}", *claim)
    bell.wait()
    waits = busy.bash("app", "true", "--claim", "read:path:src")
    check_cause(busy, waits, "claim", "conflicts with", [holder], "read:path:src")
    waits = busy.bash("lib", "true", "--after", holder)
    check_cause(busy, waits, "dependency", "runs after", [holder])
    gate.open()


def test_a_job_that_somebody_keeps_from_starting_says_what_lets_it_go_on(
    busy: LiveService,
) -> None:
    """C-07: a hold, a pause of each scope, a disabled repository, a drain."""
    free = ("app", "true", "--read-only")
    busy.cli("pause", "--all", status=0)
    held = busy.bash(*free)
    busy.cli("hold", held, status=0)
    check_cause(busy, held, "pause", f"unhold {held}")
    paused = busy.bash(*free, "--provider", "local")
    check_cause(busy, paused, "pause", "everything is paused")
    busy.cli("pause", "--repo", "app", "--provider", "local", status=0)
    busy.cli("resume", "--all", status=0)
    check_cause(busy, paused, "pause", "provider local is paused")
    busy.cli("resume", "--provider", "local", status=0)
    check_cause(busy, paused, "pause", "its repository is paused")
    busy.cli("resume", "--repo", "app", status=0)
    assert busy.end_of(paused)["state"] == "succeeded"
    check_cause(busy, held, "pause", f"unhold {held}")
    busy.cli("repo", "disable", "app", status=0)
    waits = busy.bash(*free)
    check_cause(busy, waits, "disabled", "is disabled")
    busy.cli("repo", "enable", "app", status=0)
    busy.cli("unhold", held, status=0)
    busy.wait(held, waits)
    gate = busy.gate()
    runs = busy.bash("lib", gate.wait)
    busy.until(runs, "job_running")
    assert busy.cli("drain", "--timeout", "0.1s").status == 5
    waits = busy.bash(*free)
    check_cause(busy, waits, "pause", "the service is draining")
    gate.open()


def test_a_job_under_pressure_says_what_the_machine_lacks(
    make_service: Callable[[str], LiveService],
) -> None:
    """C-07"""
    service = make_service("")
    settings = SETTINGS.replace("memory_mb = 64", "memory_mb = 1000000000")
    settings = settings.replace("workers = 64", "workers = 1")
    (service.home / "settings.toml").write_text(settings)
    service.start()
    service.add("app")
    gate, bell = service.gate(), service.bell()
    runs = service.bash("app", f"{bell.ring}; {gate.wait}", "--read-only")
    bell.wait()
    waits = service.bash("app", "true", "--read-only")
    words = "MB of memory are free, 1000000000 are wanted"
    check_cause(service, waits, "pressure", words, [runs], "workers")
    gate.open()
    assert service.end_of(waits)["state"] == "succeeded"


def test_a_job_whose_repository_is_gone_fails_with_its_path(busy: LiveService) -> None:
    """C-07 and G-13: it does not wait for what cannot come; others go on."""
    gate, bell = busy.gate(), busy.bell()
    runs = busy.bash("app", f"{bell.ring}; {gate.wait}")
    bell.wait()
    waits = busy.bash("app", "true")
    busy.until(waits, "job_queued")
    shutil.rmtree(busy.root / "app")
    gate.open()
    assert busy.end_of(runs)["state"] == "succeeded"
    end = busy.end_of(waits)
    assert (end["state"], end["attempt"]) == ("failed", 0)
    assert end["error"]["code"] == "REPOSITORY_GONE"
    assert "/app" in busy.why(waits)
    assert busy.end_of(busy.bash("lib", "true"))["state"] == "succeeded"
