"""The sources of the site: the files of the repository that are pages of it.

Links are written as they work in the repository. One to another page leads there on the
site too; of one to any other file only its text stays, as the site has no such files.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
#: Pages that are neither in `docs/` nor in `design/`, and where they are on the site.
OTHERS = {
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "benchmarks/README.md": "project/benchmarks.md",
    "README.md": "index.md",
    "examples/README.md": "how-to/examples.md",
}
_PAGES = (".md", ".svg", ".png")
_FENCED = re.compile(r"^( *)(`{3,})[^\n]*\n.*?^\1\2 *$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE | re.DOTALL)


def gather(folder: Path) -> None:
    """Put all that is written by hand into the folder.

    Raises:
        FileNotFoundError: a link leads to a file that is not there.
    """
    for path in files():
        place = site_place(path)
        if place is None or (path == "README.md"):
            continue
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.suffix == ".md":
            text = for_site((ROOT / path).read_text("utf-8"), path)
            more = _others(path, text) + _programs(path)
            target.write_text(text + more, "utf-8")
        else:
            shutil.copyfile(ROOT / path, target)
    shutil.copyfile(ROOT / "docs/conf.py", folder / "conf.py")
    shutil.copytree(ROOT / "docs/static", folder / "static")


def _others(path: str, text: str) -> str:
    """Behind the list of explanations: the pages of `design/` that it does not have."""
    names = sorted(file.stem for file in (ROOT / "design").glob("*.md"))
    rest = [name for name in names if f"\ndesign/{name}\n" not in text]
    if path != "docs/explanation.md" or not rest:
        return ""
    entries = "\n".join(f"design/{name}" for name in rest)
    return f"\n```{{toctree}}\n:caption: More\n\n{entries}\n```\n"


def _programs(path: str) -> str:
    """Behind the list of examples: what they are."""
    if path != "examples/README.md":
        return ""
    return "".join(
        f"\n## {file.name}\n\n```{file.suffix[1:].replace('py', 'python')}\n"
        f"{file.read_text('utf-8')}```\n"
        for file in sorted((ROOT / "examples").iterdir())
        if file.suffix in (".py", ".toml")
    )


def files() -> Iterator[str]:
    """The files that are pages, or pictures on them, by their path here."""
    for top in ("docs", "design"):
        for path in sorted((ROOT / top).rglob("*")):
            if path.suffix in _PAGES and path.is_file():
                yield path.relative_to(ROOT).as_posix()
    yield from OTHERS


def site_place(path: str) -> str | None:
    """Where a file of the repository is on the site; None where it is not."""
    if path in OTHERS:
        return OTHERS[path]
    if not path.endswith(_PAGES):
        return None
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return path if path.startswith("design/") else None


def for_site(text: str, path: str) -> str:
    """A page as Sphinx is to have it: its links, and without what tests are told."""
    text = _COMMENT.sub("", text)
    pieces, end = [], 0
    for fence in _FENCED.finditer(text):
        pieces += [_relinked(text[end : fence.start()], path), fence.group()]
        end = fence.end()
    return "".join([*pieces, _relinked(text[end:], path)])


def target_of(link: str, path: str) -> str | None:
    """The file that a link on a page leads to; None for one to elsewhere."""
    file = link.partition("#")[0]
    if not file or "://" in file or file.startswith("mailto:"):
        return None
    return os.path.normpath(PurePosixPath(path).parent / file)


def _relinked(text: str, path: str) -> str:
    here = site_place(path)
    assert here is not None

    def exchange(found: re.Match[str]) -> str:
        mark, words, link = found.groups()
        target = target_of(link, path)
        if target is None:
            return found.group()
        if target.startswith("docs/reference/"):
            place: str | None = target.removeprefix("docs/")
        else:
            if not (ROOT / target).exists():
                raise FileNotFoundError(
                    f"{path} has a link to {link}: nothing is there"
                )
            place = site_place(target)
        if place is None:
            return words
        way = os.path.relpath(place, PurePosixPath(here).parent)
        return f"{mark}[{words}]({way}{''.join(link.partition('#')[1:])})"

    return _LINK.sub(exchange, text)
