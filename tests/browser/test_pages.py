"""Every page, at two sizes, light and dark, with no, few and very many jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import MANY
from tests.browser.site import NARROW, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService
    from tests.browser.site import Visit

LOOKS = {"wide": (WIDE, "light"), "narrow": (NARROW, "dark")}
LOOKS_OTHERWISE = {"wide": (WIDE, "dark"), "narrow": (NARROW, "light")}
PAGES = {
    "overview": "/",
    "jobs": "/jobs",
    "waiting": "/jobs?show=waiting",
    "repositories": "/repositories",
    "workflows": "/workflows",
    "epics": "/epics",
    "schedules": "/schedules",
    "timeline": "/timeline",
    "tokens": "/timeline?by=token",
    "usage": "/usage",
    "health": "/health",
}
#: Pixels of the narrowest screen that everything fits on.
NARROWEST = 360
#: Elements of a page at most, however many jobs there are.
MOST = 4000


def look_at_all(
    visit: Visit, pages: dict[str, str], name: str, *others: tuple[int, int]
) -> None:
    """Each page once, at the size of the visit, and then at these others."""
    if visit.size == NARROW:
        others = (*others, (NARROWEST, NARROW[1]))
    for page, path in pages.items():
        visit.open(path)
        for width, height in (visit.size, *others):
            visit.page.set_viewport_size({"width": width, "height": height})
            visit.check()
            visit.shoot(f"{name}-{width}-{page}")
        count = visit.page.evaluate("document.querySelectorAll('*').length")
        assert count < MOST, path
        width, height = visit.size
        visit.page.set_viewport_size({"width": width, "height": height})


def of_app(service: LiveService) -> dict[str, str]:
    """The pages of one repository and of each kind of job in it."""
    jobs = service.json("jobs", "--limit", "6")
    found = {f"job-{job['state']}": f"/jobs/{job['id']}" for job in jobs}
    running = service.json("jobs", "--state", "running")
    found |= {"job-running": f"/jobs/{running[0]['id']}"}
    return {**PAGES, "repository": "/repositories/app", **found}


def test_pages_without_jobs_say_what_to_do(
    empty: LiveService, visit: Callable[..., Visit]
) -> None:
    seen = visit(empty, size=NARROW, scheme="dark")
    look_at_all(seen, PAGES, "empty", WIDE)
    text = seen.open("/").inner_text("main")
    assert "forge-actors repo add ." in text
    assert "forge-actors submit" in seen.open("/jobs").inner_text("main")


@pytest.mark.parametrize("look", LOOKS)
def test_pages_with_a_few_jobs(
    few: LiveService, visit: Callable[..., Visit], look: str
) -> None:
    size, scheme = LOOKS_OTHERWISE[look]
    pages = {**of_app(few), "schedule": "/schedules/nightly"}
    pages |= {"schedule-on": "/schedules/deploy", "workflow": "/workflows/release"}
    look_at_all(visit(few, size=size, scheme=scheme), pages, f"few-{look}")
    size, scheme = LOOKS[look]
    seen = visit(few, size=size, scheme=scheme)
    page = seen.open("/")
    text = page.inner_text("main")
    for told in ("server", "later", "held", "Held by a person", "exit status 3"):
        assert told in text
    assert (
        page.get_by_role("meter", name="Workers").get_attribute("aria-valuenow") == "1"
    )


def test_pages_with_thousands_of_jobs_stay_small(
    many: LiveService, visit: Callable[..., Visit]
) -> None:
    seen = visit(many, size=WIDE, scheme="light")
    look_at_all(seen, of_app(many), "many", NARROW, (NARROWEST, NARROW[1]))
    page = seen.open("/")
    assert f"{MANY - 61:,}" in page.inner_text(".tallies")
    assert page.locator(".rows > li").count() < 100


def test_a_long_list_is_read_page_by_page(
    many: LiveService, visit: Callable[..., Visit]
) -> None:
    seen = visit(many)
    page = seen.open("/jobs")
    rows = page.locator(".rows > li")
    assert rows.count() == 50
    from playwright.sync_api import expect

    first = rows.first.get_attribute("data-key")
    page.get_by_role("link", name="Older").click()
    page.wait_for_url("**/jobs?before=*")
    page.wait_for_selector(f".rows > li[data-key='{first}']", state="detached")
    expect(rows).to_have_count(50)
    page.go_back()
    page.wait_for_selector(f".rows > li[data-key='{first}']")
    page.get_by_label("State").select_option("running")
    expect(rows).to_have_count(1)
    assert "loud" in rows.first.inner_text()
    seen.check()


def test_of_a_long_output_the_end_is_shown_and_searched(
    many: LiveService, visit: Callable[..., Visit]
) -> None:
    seen = visit(many)
    [loud] = many.json("jobs", "--state", "running")
    page = seen.open(f"/jobs/{loud['id']}")
    page.wait_for_selector("text=20000")
    assert page.locator(".log .line").count() <= 3000
    page.keyboard.press("/")
    page.keyboard.type("1999")
    found = page.locator(".log-search [role=status]")
    # 19990 to 19999, and 1999 itself is not among the last thousand lines.
    assert found.inner_text() == "1 of 10"
    page.keyboard.press("Enter")
    assert found.inner_text() == "2 of 10"
    seen.check()
