"""The pages: what links to what, and what the reference is made of."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING

import pytest

from docs.making import links, sources
from docs.making.reference import PUBLIC, event_rows, groups
from docs.making.reference import pages as reference_pages
from forge_actors.cli.main import VERBS
from forge_actors.domain.events import KINDS
from forge_actors.runtime.settings import Settings
from tests.docs.blocks import pages

if TYPE_CHECKING:
    from pathlib import Path

#: What most people come for.
ASKED = ("limit-agents", "why-a-job-waits", "crashes", "move", "remove")


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    return dict(reference_pages())


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_what_most_people_ask_is_one_step_from_the_start(page: str) -> None:
    text = (sources.ROOT / page).read_text()
    for name in ASKED:
        assert f"how-to/{name}.md)" in text


@pytest.mark.parametrize("page", pages())
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    text = (sources.ROOT / page).read_text()
    sources.for_site(text, page)  # raises where nothing is there


def test_a_link_to_nothing_is_refused() -> None:
    with pytest.raises(FileNotFoundError, match=r"docs/start.md .* gone.md"):
        sources.for_site("[this](gone.md)", "docs/start.md")


def test_links_lead_to_the_same_page_on_the_site() -> None:
    def on_site(text: str, page: str) -> str:
        return sources.for_site(text, page).strip()

    to_design = "[a](../../design/waits.md#x)"
    assert on_site(to_design, "docs/how-to/move.md") == "[a](../design/waits.md#x)"
    assert on_site("[b](docs/start.md)", "CONTRIBUTING.md") == "[b](../start.md)"
    assert on_site("the [file](../tox.ini) there", "docs/start.md") == "the file there"
    hidden = "<!-- not run: it installs -->\n```console\n$ [x](y)\n```"
    assert on_site(hidden, "docs/start.md") == "```console\n$ [x](y)\n```"


def test_the_reference_has_every_verb_setting_event_and_name(
    reference: dict[str, str],
) -> None:
    commands = "".join(text for name, text in reference.items() if "commands" in name)
    for verb in VERBS:
        assert f"\n## {verb}\n" in commands
        assert re.search(rf"usage: forge-actors {verb}\b", commands)
    assert sorted(verb for verbs in groups().values() for verb in verbs) == sorted(
        VERBS
    )
    for name in Settings().values():
        assert f"| `{name.rpartition('.')[2]}` |" in reference["reference/settings.md"]
    for kind in KINDS:
        assert f"| `{kind}` |" in reference["reference/events.md"]
    for module in PUBLIC:
        for name in getattr(importlib.import_module(module), "__all__", ()):
            assert f":: {module}.{name}\n" in reference["reference/api.md"]


def test_a_kind_of_event_that_no_page_tells_of_is_missed() -> None:
    text = (sources.ROOT / "design/events.md").read_text()
    assert event_rows(text)["schedule_removed"].startswith("of a schedule")
    with pytest.raises(ValueError, match="job_held"):
        event_rows(text.replace("| `job_held`, `job_unheld` | |", ""))
    with pytest.raises(ValueError, match="job_hold"):
        event_rows(text.replace("| `job_held`,", "| `job_hold`, `job_held`,"))


def test_a_site_is_looked_through_for_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1>')
    (tmp_path / "site.css").write_text("@import url(https://fonts.example/x.css);")
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">1</a><a href="b.html#there">2</a><a href="c.html">3</a>'
        '<a href="http://example.org/">4</a><a href="https://example.org/">5</a>'
        '<script src="https://cdn.example/x.js"></script><img src="data:image/png,">'
    )
    found = links.problems(tmp_path)
    assert [line.split(": ", 1)[-1].split(": ")[-1] for line in found] == [
        "has no such place",
        "nothing is there",
        "is no https link",
        "is fetched from elsewhere",
        "fetches from elsewhere",
    ]
