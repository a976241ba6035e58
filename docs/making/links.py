"""What is wrong with a site that was built: its links, and what it would fetch."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: What a browser loads without being asked.
_LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src")}


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.links: list[tuple[str, str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.names.add(value)
            if value and name in ("href", "src"):
                self.links.append((tag, name, value))


def problems(site: Path) -> list[str]:
    """A line for each link that leads nowhere, and for each thing from elsewhere."""
    pages = {
        path.resolve(): _Page(path.read_text("utf-8")) for path in site.rglob("*.html")
    }
    found = set()
    for path, page in pages.items():
        for tag, name, link in page.links:
            problem = _problem(pages, path, (tag, name), link)
            if problem:
                found.add(f"{path.relative_to(site.resolve())}: {link}: {problem}")
    return sorted(found) + sorted(_fetched(site))


def _problem(
    pages: dict[Path, _Page], path: Path, kind: tuple[str, str], link: str
) -> str | None:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        if parts.scheme == "data":
            return None
        if kind in _LOADED:
            return "is fetched from elsewhere"
        return None if parts.scheme in ("https", "mailto") else "is no https link"
    target = path
    if parts.path:
        target = (path.parent / unquote(parts.path)).resolve()
        if target.is_dir():
            target /= "index.html"
    if not target.is_file():
        return "nothing is there"
    name = unquote(parts.fragment)
    if name and target in pages and name not in pages[target].names:
        return "has no such place"
    return None


def _fetched(site: Path) -> Iterator[str]:
    for path in site.rglob("*.css"):
        text = path.read_text("utf-8")
        if "url(http" in text or "url(//" in text or "@import" in text:
            yield f"{path.relative_to(site)}: fetches from elsewhere"
