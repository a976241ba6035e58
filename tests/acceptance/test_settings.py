"""Settings of a running service: checked, shown and reloaded; jobs are left alone."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import wait_for_words
from tests.acceptance.service import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.bench import Bell, Gate
    from tests.acceptance.service import LiveService

    Make = Callable[[str], LiveService]

LOCAL = "[limits]\nworkers = 3\n[providers.local]\nlimit = 2\n"


class Busy:
    """A service whose three workers are taken: two of them by a provider's jobs."""

    def __init__(self, service: LiveService) -> None:
        self.service = service
        service.start()
        for repo in ("app", "lib", "web"):
            service.add(repo)
        self.gate: Gate = service.gate()
        self.bell: Bell = service.bell()
        script = f"{self.bell.ring}; {self.gate.wait}"
        local = ("--provider", "local", "--read-only")
        self.running = [
            service.bash("app", script, *local),
            service.bash("lib", script, *local),
            service.bash("web", script, "--read-only"),
        ]
        self.bell.wait(3)
        for job in self.running:
            service.until(job, "job_running")
        self.before = self.seen()

    def seen(self) -> list[tuple[object, ...]]:
        shown = [self.service.show(job) for job in self.running]
        return [(job["state"], job["pid"], job["attempt"]) for job in shown]

    def write(self, text: str) -> None:
        self.service.write_settings(SETTINGS + text)

    def reload(self, text: str) -> tuple[int, str, str]:
        """Reload a file; what runs is the same afterwards, and so is the service."""
        self.write(text)
        done = self.service.cli("settings", "reload")
        assert self.seen() == self.before
        status = self.service.json("status")
        assert status["service"]["pid"] == self.service.pid
        assert "Traceback" not in done.err
        return done.status, done.out, done.err

    def value(self, name: str) -> object:
        views = self.service.json("settings", "show")
        found = {view["name"]: view["value"] for view in views}
        return found.get(name)

    def end(self) -> None:
        self.gate.open()
        ends = self.service.wait(*self.running)
        assert {end["state"] for end in ends} == {"succeeded"}


@pytest.fixture
def busy(make_service: Make) -> Busy:
    return Busy(make_service(LOCAL))


BROKEN = [
    (f"{LOCAL}[limits\n", "settings.toml:11: is no valid TOML"),
    (
        f"{LOCAL}limits = 3\n",
        "settings.toml:11: providers.local.limits: is not a known",
    ),
    (
        LOCAL.replace("workers = 3", "workers = '3'"),
        "settings.toml:8: limits.workers: '3' is not allowed (allowed: a whole number",
    ),
    (
        LOCAL.replace("limit = 2", "limit = 0"),
        "settings.toml:10: providers.local.limit: 0 is not allowed",
    ),
]


def test_a_broken_file_is_refused_with_its_line_and_the_old_settings_hold(
    busy: Busy,
) -> None:
    """C-05: a syntax error, an unknown key, a wrong type; the check says the same."""
    before = len(busy.service.events())
    for text, problem in BROKEN:
        status, out, err = busy.reload(text)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert problem in err
        checked = busy.service.cli("settings", "check")
        assert (checked.status, checked.err) == (2, err)
        assert busy.value("limits.workers") == 3
    assert len(busy.service.events()) == before
    busy.end()


def test_a_limit_below_what_runs_lets_it_run_and_starts_nothing_new(
    busy: Busy,
) -> None:
    """C-05"""
    service = busy.service
    status, out, _ = busy.reload(LOCAL.replace("workers = 3", "workers = 1"))
    assert (status, out) == (0, "limits.workers: 3 -> 1\n")
    assert service.json("status")["capacity"]["workers"]["used"] == 3
    service.add("doc")
    waits = service.bash("doc", "true", "--read-only")
    assert "3 of 1 workers are in use" in service.why(waits)
    busy.end()
    assert service.end_of(waits)["state"] == "succeeded"
    events = service.events()
    order = [(event.kind, event.job) for event in events if event.job]
    last = max(order.index(("job_succeeded", job)) for job in busy.running)
    assert order.index(("job_dispatched", waits)) > last
    [changed] = [e.data for e in events if e.kind == "settings_changed"]
    assert changed["changed"]["limits.workers"] == {"old": 3, "new": 1}


def test_a_provider_that_is_removed_while_its_jobs_run(busy: Busy) -> None:
    """C-05 and Q-09: what waits for it says that it cannot run, the others go on."""
    service = busy.service
    waits = service.bash("app", "true", "--read-only", "--provider", "local")
    without = "[limits]\nworkers = 4\n"
    status, out, _ = busy.reload(without)
    assert status == 0
    assert out.splitlines() == [
        "limits.workers: 3 -> 4",
        "providers.local.limit: 2 -> not set",
    ]
    why = service.why(waits)
    assert "It cannot run: the settings no longer name its provider 'local'" in why
    assert "settings reload" in why
    waiting = service.show(waits)["waiting"]
    assert (waiting["kind"], waiting["resource"]) == ("policy", "provider:local")
    other = service.bash("app", "true", "--read-only")
    assert service.end_of(other)["state"] == "succeeded"
    refused = service.cli(
        "submit", "--repo", "app", "--provider", "local", "--", "true"
    )
    assert refused.status == 2
    assert "'local' is no known provider" in refused.err
    assert busy.reload(LOCAL)[0] == 0
    busy.end()
    assert service.end_of(waits)["state"] == "succeeded"


def test_jobs_of_a_provider_that_was_removed_while_nothing_served_say_so_too(
    busy: Busy,
) -> None:
    service = busy.service
    waits = service.bash("app", "true", "--read-only", "--provider", "local")
    busy.write("")
    service.terminate()
    service.start()
    assert "It cannot run" in service.why(waits)
    done = service.cli("cancel", waits, status=0)
    assert "Traceback" not in done.err
    assert service.end_of(waits)["state"] == "cancelled"


def test_a_hang_up_reloads_and_the_log_tells_how_it_went(busy: Busy) -> None:
    service = busy.service
    busy.write("[limits]\nworkers = none\n")
    os.kill(service.pid, signal.SIGHUP)
    # A signal that still waits is not sent twice.
    log = service.home / "service.log"
    wait_for_words(log, "settings.toml:8: is no valid TOML")
    busy.write(LOCAL.replace("workers = 3", "workers = 5"))
    os.kill(service.pid, signal.SIGHUP)
    changed = service.until(None, "settings_changed")
    assert changed.data["changed"] == {"limits.workers": {"old": 3, "new": 5}}
    assert busy.value("limits.workers") == 5
    assert busy.seen() == busy.before
    busy.end()
    service.cli("stop", status=0)
    assert "the settings were reloaded: limits.workers 3 -> 5" in log.read_text()


def test_show_names_the_line_and_the_variable(
    make_service: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGE_MAX_HEAVY_CHECKS", "1")
    service = make_service(LOCAL)
    service.start()
    # What the service was started with counts, not what is set where one asks.
    monkeypatch.delenv("FORGE_MAX_HEAVY_CHECKS")
    views = {view["name"]: view for view in service.json("settings", "show")}
    file = service.home / "settings.toml"
    assert views["limits.workers"]["at"] == f"{file}:8"
    heavy = views["limits.heavy_checks"]
    assert (heavy["value"], heavy["source"]) == (1, "environment")
    assert views["limits.agents"]["source"] == "default"
    service.terminate()
    done = service.cli("settings", "show", status=0)
    assert "no service runs on" in done.err
