"""The pages of EPICs: seen as it happens, and stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.service import LiveService
from tests.browser.site import NARROW, WIDE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.browser.site import Visit

PLAN = """
title = "The <b>importer</b>"
[[issue]]
number = 1
title = "Fails <script>alert(1)</script> \\u202e and has a title that fits no phone"
[[issue]]
number = 2
title = "Goes on"
[[issue]]
number = 3
title = "Comes last"
blocked_by = [2]
"""
SETTINGS = """
[epic.phases.implement]
argv = ["sh", "-c", 'test "$EPIC_ISSUE" = 2 && exec sleep 600']
"""


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    made = LiveService(SETTINGS)
    made.start()
    made.add("app")
    yield made
    made.close()


def test_a_run_is_seen_and_stopped(
    service: LiveService, visit: Callable[..., Visit]
) -> None:
    plan = service.root / "plan.toml"
    plan.write_text(PLAN)
    seen = visit(service)
    page = seen.open("/epics")
    page.get_by_text("No EPIC was worked through yet").wait_for()
    begin = ("epic", "run", str(plan), "--detach", "--repo", "app")
    run = service.cli(*begin, status=0).out.strip()
    page.get_by_role("link", name="The <b>importer</b>").click()
    rows = page.locator(".rows > li")
    rows.filter(has_text="#1 Fails").filter(has_text="command exited 1").wait_for()
    rows.filter(has_text="#3 Comes last").filter(has_text="waits for #2").wait_for()
    picture = page.locator(".graph img")
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)")
    seen.check()
    for size, scheme in ((WIDE, "dark"), (NARROW, "light")):
        other = visit(service, size=size, scheme=scheme)
        for path in ("/", "/epics", f"/epics/{run}"):
            other.open(path)
            other.check()
            other.shoot(f"epics-{scheme}-{path.strip('/').partition('/')[0]}")
    page.get_by_role("button", name="Stop now").click()
    page.get_by_role("button", name="Not now").click()
    page.get_by_role("button", name="Stop now").click()
    page.locator("dialog").get_by_role("button", name="Stop now").click()
    page.locator(".state", has_text="Stopped").wait_for()
    assert page.get_by_role("button", name="Stop").count() == 0
    seen.check()
    [kept] = [each for each in service.json("epic", "list") if each["id"] == run]
    assert kept["reason"] == "stopped"
    [item] = service.json("inbox")["items"]
    assert (item["kind"], item["evidence"]["issue"]) == ("epic", "#1")
    page = seen.open("/")
    page.get_by_role("link", name="EPIC", exact=True).click()
    page.locator(".rows a.id").first.click()
    page.get_by_role("link", name=run).click()
    page.wait_for_url(f"**/epics/{run}")
