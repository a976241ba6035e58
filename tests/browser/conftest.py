"""Fixtures: one browser for all tests, and services with few and with many jobs."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.service import LiveService
from tests.browser.site import SECONDS, Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser

CHROMIUM = os.environ.get("PAGES_CHROMIUM") or shutil.which("chromium")
#: It asks nobody but the pages for anything.
FLAGS = (
    *("--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
MANY = 5000
#: A workflow that asks something when it has come so far.
RELEASE = """
[workflow]
repo = "site"
on_failure = "continue"
[[step]]
name = "build"
job = { argv = ["true"], read_only = true }
[[step]]
name = "test"
after = ["build"]
job = { argv = ["sh", "-c", "exit 3"], read_only = true }
[[step]]
name = "ship"
after = ["test", "build"]
gate = "Ship <b>it</b>?"
job = { argv = ["true"], read_only = true }
[[step]]
name = "undo"
after = ["ship"]
when = "failed"
job = { argv = ["true"], read_only = true }
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser/" in item.path.as_posix():
            item.add_marker(pytest.mark.browser)
            # Told at the end of the run, as of every program that is not here.
            if missing := _missing():
                reason = f"NOT RUN: there is no {missing} here"
                item.add_marker(pytest.mark.skip(reason=reason))


def _missing() -> str | None:
    if CHROMIUM is None:
        return "chromium"
    return None if find_spec("playwright") else "playwright (tox -e browser has it)"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=SECONDS * 1000)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=list(FLAGS),
            chromium_sandbox=os.geteuid() != 0,
        )
        yield started
        started.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Logs a browser in to a service."""
    visits: list[Visit] = []

    def begin(service: LiveService, **options: object) -> Visit:
        visits.append(Visit(browser, service, **options))
        return visits[-1]

    yield begin
    for each in visits:
        each.close()


@pytest.fixture(scope="module")
def empty() -> Iterator[LiveService]:
    """A service that nobody has used yet."""
    service = LiveService()
    service.start()
    yield service
    service.close()


@pytest.fixture(scope="module")
def few() -> Iterator[LiveService]:
    """A service with five jobs, each in another state."""
    service = LiveService()
    service.start()
    service.add("app")
    service.add("site")
    done = service.bash("app", "seq 30; echo bad >&2", "--kind", "check")
    failed = service.bash("app", "exit 3", "--name", "unit-tests", "--read-only")
    service.wait(done, failed)
    runs = service.bash("app", "echo begun; sleep 600", "--name", "server")
    service.bash("app", "true", "--after", runs, "--name", "later")
    service.cli("pause", "--repo", "site", status=0)
    service.cli("hold", service.bash("site", "true", "--name", "held"), status=0)
    service.cli("resume", "--repo", "site", status=0)
    service.until(runs, "job_running")
    add = ("schedule", "add", "--repo", "app", "--overlap", "queue")
    service.cli(*add, "nightly", "--cron", "30 2 * * *", "--", "make", status=0)
    service.cli(*add, "often", "--manual", "--shadow", "--", "true", status=0)
    service.cli("schedule", "pause", "often", status=0)
    service.cli(*add, "deploy", "--on", "succeeded:build", "--", "true", status=0)
    file = service.root / "release.toml"
    file.write_text(RELEASE)
    service.cli("workflow", "run", str(file), status=0)
    service.until(None, "workflow_asks")
    yield service
    service.close()


@pytest.fixture(scope="module")
def many() -> Iterator[LiveService]:
    """A service with thousands of jobs, most of which wait."""
    service = LiveService()
    service.start()
    service.add("app")
    runs = service.bash(
        "app", "seq 1 20000; sleep 600", "--name", "loud", "--read-only"
    )
    ended = [{"repo": "app", "argv": ["true"]} for _ in range(60)]
    service.wait(*service.batch(ended), seconds=60)
    waiting = {"repo": "app", "argv": ["true"], "after": [runs]}
    jobs = [{**waiting, "name": f"job-{number}"} for number in range(MANY - 61)]
    service.batch(jobs)
    yield service
    service.close()
