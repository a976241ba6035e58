"""What one does in the pages: log in, look on, search, steer, and by keyboard."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.agents import FakeAgent, install
from tests.acceptance.bench import Gate
from tests.acceptance.service import LiveService
from tests.browser.site import NARROW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    from tests.browser.site import Visit

#: Whether an element is within the one that it is scrolled in.
IN_SIGHT = """(found) => {
  const inner = found.getBoundingClientRect();
  const outer = found.parentElement.getBoundingClientRect();
  return inner.left >= outer.left && inner.right <= outer.right;
}"""


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    made = LiveService()
    made.start()
    made.add("app")
    yield made
    made.close()


def test_an_output_is_followed_and_an_end_is_told(
    service: LiveService, visit: Callable[..., Visit]
) -> None:
    gate = Gate(service.root / "gate")
    job = service.bash("app", f"echo begun; {gate.wait}; echo last; exit 3")
    service.until(job, "job_running")
    seen = visit(service)
    page = seen.open(f"/jobs/{job}")
    page.wait_for_selector(".log .line:has-text('begun')")
    assert page.locator(".job-state").inner_text().startswith("Running")
    gate.open()
    page.wait_for_selector(".log .line:has-text('last')")
    page.wait_for_selector(".job-state:has-text('Failed')")
    assert "Failed" in page.locator("#said").inner_text()
    assert "exit status 3" in page.inner_text(".why")
    assert page.locator(".steps .step").first.inner_text().startswith("Failed")
    seen.check()


def test_what_was_hidden_goes_on_where_it_was(
    service: LiveService, visit: Callable[..., Visit]
) -> None:
    seen = visit(service)
    page = seen.open("/")
    hide = """(hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(hide, True)
    page.wait_for_selector("#link.asleep", state="attached")
    job = service.bash("app", "true", "--name", "meanwhile")
    service.end_of(job)
    assert page.locator("text=meanwhile").count() == 0
    page.evaluate(hide, False)
    page.wait_for_selector("text=meanwhile")
    seen.check()


def test_a_job_is_held_let_go_on_cancelled_and_retried(
    service: LiveService, visit: Callable[..., Visit]
) -> None:
    gate = Gate(service.root / "gate2")
    service.bash("app", gate.wait)
    job = service.bash("app", "true", "--name", "steered")
    seen = visit(service)
    page = seen.open(f"/jobs/{job}")
    page.get_by_role("button", name="Hold").click()
    page.wait_for_selector(".job-state:has-text('Held')")
    page.get_by_role("button", name="Let go on").click()
    page.wait_for_selector(".job-state:has-text('Waits')")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Not now").click()
    assert service.show(job)["state"] != "cancelled"
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Cancel the job").click()
    page.wait_for_selector(".job-state:has-text('Cancelled')")
    page.get_by_role("button", name="Retry").click()
    page.wait_for_url(lambda url: "/jobs/" in url and job not in url)
    page.wait_for_selector("dt:has-text('Retry of')")
    assert service.show(page.url.rpartition("/")[2])["retry_of"] == job
    gate.open()
    page.wait_for_selector(".job-state:has-text('Succeeded')")
    seen.check()


def test_a_running_job_is_paused_and_resumed(
    service: LiveService, visit: Callable[..., Visit]
) -> None:
    job = service.bash("app", "sleep 600", "--read-only")
    service.until(job, "job_running")
    seen = visit(service)
    page = seen.open(f"/jobs/{job}")
    page.get_by_role("button", name="Pause").click()
    page.wait_for_selector(".job-state:has-text('Paused')")
    page.get_by_role("button", name="Resume").click()
    page.wait_for_selector(".job-state:has-text('Running')")
    service.cli("cancel", job, status=0)
    page.wait_for_selector(".job-state:has-text('Cancelled')")
    seen.check()


def test_what_is_refused_is_said(
    service: LiveService, visit: Callable[..., Visit]
) -> None:
    seen = visit(service)
    page = seen.open("/")
    page.locator("#find-text").fill("nosuchjob")
    page.keyboard.press("Enter")
    page.wait_for_selector(".note.bad:has-text('nosuchjob')")
    # The console says that a request had no success; nothing else.
    assert [said for said in seen.said if "404" not in said] == []


def test_an_agent_is_answered(
    visit: Callable[..., Visit], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = LiveService()
    fake = install(service.root / "bin", "claude")
    path = f"{fake.path.parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    service.start()
    try:
        service.add("app")
        answer(service, fake, visit(service))
    finally:
        service.close()


def answer(service: LiveService, fake: FakeAgent, seen: Visit) -> None:
    fake.play("asks", text="Which <b>one</b>?")
    page = seen.open("/")
    job = service.submit("--repo", "app", "--agent", "claude", "--prompt", "Do it.")
    card = page.locator(".card")
    card.wait_for()
    assert "Which <b>one</b>?" in card.inner_text()
    assert "1" in page.inner_text("#needs")
    card.get_by_role("button", name="Answer").click()
    send = page.get_by_role("button", name="Send")
    assert send.is_disabled()
    page.get_by_label("Your answer").fill("The first one.")
    send.click()
    assert service.end_of(job)["state"] == "succeeded"
    page.wait_for_selector(".card", state="detached")
    _opened_again(service, fake, page)
    page = seen.open("/usage?by=agent")
    assert "claude" in page.inner_text(".sums")
    seen.shoot("usage")
    seen.check()


def _opened_again(service: LiveService, fake: FakeAgent, page: Page) -> None:
    """A login that failed closes its provider until somebody says that it is mended."""
    fake.play("auth")
    job = service.submit("--repo", "app", "--agent", "claude", "--prompt", "Do it.")
    card = page.locator(".card", has_text="provider claude is closed")
    card.wait_for()
    fake.play("success", text="Done.")
    card.get_by_role("button", name="Open it again").click()
    assert service.end_of(job)["state"] == "succeeded"
    card.wait_for(state="detached")


def test_everything_is_within_reach_of_the_keyboard(
    service: LiveService, visit: Callable[..., Visit]
) -> None:
    job = service.bash("app", "true", "--name", "by-keys")
    service.end_of(job)
    seen = visit(service)
    page = seen.open("/")
    keys = page.keyboard
    keys.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    keys.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    keys.press("g")
    keys.press("j")
    page.wait_for_url("**/jobs")
    page.wait_for_selector("[data-row]")
    keys.press("j")
    assert "by-keys" in page.evaluate("document.activeElement.textContent")
    keys.press("j")
    keys.press("k")
    keys.press("Enter")
    page.wait_for_url(f"**/jobs/{job}")
    keys.press("?")
    page.wait_for_selector("dialog[open]")
    keys.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    keys.press("g")
    keys.press("o")
    page.wait_for_selector(".tallies")
    keys.press("/")
    keys.type(job[-6:])
    keys.press("Enter")
    page.wait_for_url(f"**/jobs/{job}")
    seen.settled()
    seen.check()


def test_a_browser_without_a_login_is_told_how_to_get_one(
    service: LiveService, browser: Browser, visit: Callable[..., Visit]
) -> None:
    origin = visit(service).origin
    with browser.new_context() as context:
        page = context.new_page()
        for path in ("/", "/jobs/abc"):
            answer = page.goto(f"{origin}{path}")
            assert answer is not None
            assert answer.status == 401
            assert "forge-actors open" in page.inner_text("main")


def test_a_link_lets_one_browser_in_and_no_other(
    service: LiveService, browser: Browser
) -> None:
    link = service.cli("open", "--print", status=0).out.strip()
    for title in ("Forge Actors", "Link used · Forge Actors"):
        with browser.new_context() as context:
            page = context.new_page()
            page.goto(link)
            page.wait_for_load_state()
            assert page.title() == title


def test_the_file_that_leads_to_a_link_lets_in(
    service: LiveService, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Gate(service.root / "opened")
    folder = service.root / "desktop"
    folder.mkdir()
    (folder / "xdg-open").write_text(f'#!/bin/sh\nprintf "%s" "$1" > {opened.path}\n')
    (folder / "xdg-open").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    job = service.bash("app", "true")
    service.cli("open", job, status=0)
    file = service.home / "open.html"
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(file.as_uri())
        page.wait_for_url(f"**/jobs/{job}")
        page.wait_for_selector(".job-state")


def test_one_logs_out_and_is_out(
    service: LiveService, visit: Callable[..., Visit]
) -> None:
    seen = visit(service)
    page = seen.open("/")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_selector("h1:has-text('You are logged out')")
    seen.check()
    answer = page.goto(f"{seen.origin}/jobs")
    assert answer is not None
    assert answer.status == 401


def test_a_page_whose_login_ended_elsewhere_says_so(
    service: LiveService, visit: Callable[..., Visit]
) -> None:
    seen = visit(service)
    other = seen.context.new_page()
    other.goto(f"{seen.origin}/jobs")
    other.wait_for_selector("#link.live")
    seen.page.get_by_role("button", name="Log out").click()
    seen.page.wait_for_selector("h1:has-text('You are logged out')")
    service.bash("app", "true")
    other.wait_for_selector("h1:has-text('You are logged out')")


def test_a_page_outlives_its_service(visit: Callable[..., Visit]) -> None:
    service = LiveService()
    service.start()
    try:
        seen = visit(service)
        page = seen.open("/")
        service.terminate()
        page.wait_for_selector("#link:has-text('Reconnecting')")
        assert page.locator(".tallies").count() == 1
    finally:
        service.close()


def test_a_schedule_is_run_and_paused(
    few: LiveService, visit: Callable[..., Visit]
) -> None:
    page = visit(few).open("/schedules")
    page.get_by_role("link", name="nightly").click()
    page.get_by_role("button", name="Run now").click()
    page.get_by_text("somebody asked for it").first.wait_for()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").click()
    page.get_by_role("button", name="Pause").wait_for()
    shown = few.json("schedule", "show", "nightly")
    assert (shown["state"], shown["runs"]) == ("active", 1)
    text = visit(few).open("/schedules/deploy").inner_text("main")
    waits = "a job, or a job of a schedule, called build succeeds"
    assert f"Runs when {waits}" in text
    assert waits in text.partition("Waits for")[2]


def test_a_workflow_is_seen_and_what_it_asks_is_answered(
    few: LiveService, visit: Callable[..., Visit]
) -> None:
    page = visit(few, size=NARROW).open("/")
    asked = page.locator(".card", has_text="Ship <b>it</b>?")
    asked.get_by_role("button", name="No").click()  # it asks whether one is sure
    page.keyboard.press("Escape")
    asked.get_by_role("link", name="Workflow").click()
    page.get_by_text("Ship <b>it</b>?").first.wait_for()
    here = page.locator(".nav [aria-current]")
    assert here.inner_text() == "Workflows"
    assert here.evaluate(IN_SIGHT)
    picture = page.locator(".graph img")
    picture.wait_for()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)")
    text = page.inner_text("main")
    assert "exit status 3" in text
    page.goto(page.url.partition("/workflows")[0])
    asked.get_by_role("button", name="Yes").click()
    asked.wait_for(state="detached")
    page.go_back()
    page.locator(".state", has_text="Failed").wait_for()
    shown = few.json("workflow", "show", "release")
    assert [step["state"] for step in shown["steps"]] == [
        "succeeded",
        "failed",
        "succeeded",
        "skipped",
    ]
    page.get_by_role("button", name="Retry").wait_for()
