"""A job whose every word is an attack: it is shown, and that is all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.service import LiveService
from tests.browser.site import NARROW, WIDE, Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVIL = (
    "<img src=x onerror=alert(1)><script>window.owned=1</script>"
    "<style>*{display:none}</style></bdi></div>&lt;b&gt;\"'`${alert(1)}"
    "\u202eevil\u2066\u200b\x1b[31mred\x1b]0;title\x07\x9b2J\u2028javascript:alert(1)"
)


@pytest.fixture(scope="module")
def hostile() -> Iterator[LiveService]:
    service = LiveService()
    service.start()
    service.add("app")
    script = 'printf "%s\\n" "$1"; printf "%s" "$1" >&2; printf "%s" "$1" >"$2"; exit 4'
    words = ["sh", "-c", script, "sh", EVIL, "<b>.txt"]
    options = ["--label", "<i>label", "--request-id", "<u>", "--artifact", "*.txt"]
    service.wait(
        service.submit("--repo", "app", "--name", EVIL, *options, "--", *words),
        service.submit("--repo", "app", "--isolate", "--", *words),
        service.submit("--repo", "app", "--", "sh", "-c", "head -c 3000000 /dev/zero"),
    )
    yield service
    service.close()


def test_what_a_job_says_is_shown_and_does_nothing(
    hostile: LiveService, visit: Callable[..., Visit]
) -> None:
    seen = visit(hostile)
    jobs = hostile.json("jobs")
    paths = ["/", "/jobs", "/jobs?label=%3Ci%3Elabel", "/repositories/app", "/timeline"]
    for path in [*paths, *(f"/jobs/{job['id']}" for job in jobs)]:
        page = seen.open(path)
        if path.startswith("/jobs/"):
            page.wait_for_selector(".log .line, .log-note")
        for details in page.locator("details").all():
            details.evaluate("each => { each.open = true }")
        for width, height in (NARROW, WIDE):
            page.set_viewport_size({"width": width, "height": height})
            seen.check()
            seen.shoot(f"hostile-{width}-{len(path)}")
        # Elements that only a job could have put there.
        assert page.locator("img,i,u,style,main script,iframe").count() == 0
        assert page.evaluate("window.owned") is None
        assert page.evaluate("document.title").endswith("Forge Actors")
    [named] = [job for job in jobs if job["name"]]
    page = seen.open(f"/jobs/{named['id']}")
    page.wait_for_selector(".log .line")
    text = page.inner_text("main")
    assert "<img src=x onerror=alert(1)>" in page.inner_text("h1")
    for sign in ("⟨U+202E⟩evil", "⟨ESC⟩[31mred", "⟨BEL⟩", "⟨U+2028⟩"):
        assert sign in text


def test_the_browser_itself_refuses_to_make_markup_of_a_text(
    hostile: LiveService, visit: Callable[..., Visit]
) -> None:
    seen = visit(hostile)
    refused = """() => {
      try { document.body.innerHTML = "<b>x</b>"; } catch (error) { return error.name; }
      return null;
    }"""
    assert seen.page.evaluate(refused) == "TypeError"
    assert any("trusted" in said.lower() for said in seen.said)
    seen.said.clear()


def test_an_artifact_is_never_shown_as_a_page(
    hostile: LiveService, visit: Callable[..., Visit]
) -> None:
    seen = visit(hostile)
    [job] = [job for job in hostile.json("jobs") if job["name"]]
    page = seen.open(f"/jobs/{job['id']}")
    with page.expect_download() as told:
        page.locator(".files a").first.click()
    assert told.value.path().read_bytes() == EVIL.encode()
    assert page.evaluate("window.owned") is None
