"""A real service with its pages, and a browser that looks at them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.acceptance.service import LiveService

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

#: Where screenshots are kept for somebody to look at; nowhere unless it is set.
SHOTS = os.environ.get("PAGES_SCREENSHOTS")
#: Longest that anything in a page may take which a test waits for.
SECONDS = 30
WIDE, NARROW = (1280, 800), (390, 844)
#: Characters that must never be in a page as they are.
UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
#: Everything that a page says: its texts, and what is shown for pointing at it.
TEXTS = """() => {
  const found = [document.title];
  const walk = document.createTreeWalker(document, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) found.push(walk.currentNode.data);
  for (const each of document.querySelectorAll("[title],[aria-label],[download]"))
    for (const { value } of each.attributes) found.push(value);
  return found;
}"""
TOO_WIDE = """() => {
  const { scrollWidth, clientWidth } = document.documentElement;
  return scrollWidth - clientWidth;
}"""
#: Tells the console of everything that the policy of the page has refused.
TELL_VIOLATIONS = """addEventListener("securitypolicyviolation", (event) =>
  console.error("policy", event.violatedDirective, event.blockedURI))"""


class Visit:
    """One browser that is logged in, and what its console has said."""

    def __init__(
        self,
        browser: Browser,
        service: LiveService,
        size: tuple[int, int] = WIDE,
        scheme: Any = "light",
    ) -> None:
        self.service = service
        self.size = size
        self.said: list[str] = []
        self.context: BrowserContext = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme
        )
        self.context.set_default_timeout(SECONDS * 1000)
        self.context.add_init_script(TELL_VIOLATIONS)
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda told: self._hear(told.type, told.text))
        self.page.on("pageerror", lambda error: self._hear("error", str(error)))
        self.page.on("dialog", lambda box: self._hear("error", f"dialog {box.type}"))
        link = service.cli("open", "--print", status=0).out.strip()
        self.origin = link.partition("/login")[0]
        self.page.goto(link)
        self.page.wait_for_selector("#main .page > *")

    def _hear(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.said.append(f"{kind}: {text}")

    def open(self, path: str) -> Page:
        """A page once it shows what it was opened for."""
        self.page.goto(f"{self.origin}{path}")
        self.settled()
        return self.page

    def settled(self) -> None:
        """Wait until the page has what it asked for."""
        self.page.wait_for_selector("#link.live")
        self.page.wait_for_selector("body[data-busy='0']")
        self.page.wait_for_selector("#main .page > *", state="attached")

    def check(self) -> None:
        """Nothing is wider than the page, and the console is silent."""
        wide = self.page.evaluate(TOO_WIDE)
        assert wide <= 0, f"{self.page.url} is {wide} pixels too wide"
        assert self.page.locator("main h1").count() == 1, self.page.url
        assert self.said == [], (self.page.url, self.said)
        texts = self.page.evaluate(TEXTS)
        odd = [text for text in texts if UNSEEN.search(text)]
        assert odd == [], (self.page.url, odd)

    def shoot(self, name: str) -> None:
        if SHOTS:
            Path(SHOTS).mkdir(exist_ok=True)
            self.page.screenshot(path=f"{SHOTS}/{name}.png")

    def close(self) -> None:
        self.context.close()
