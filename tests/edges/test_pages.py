"""The pages as they are sent: their files, their headers, and what is not sent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from forge_actors.domain.inbox import ItemKind
from forge_actors.domain.jobs import STATES
from forge_actors.domain.readiness import DIAGNOSTICS
from forge_actors.domain.waiting import WaitingKind
from forge_actors.domain.workflow_steps import StepState, WorkflowState
from forge_actors.edges.gateway.auth import Gate
from forge_actors.edges.gateway.messages import NOBODY, Asker, Request, Response
from forge_actors.edges.gateway.pages import assets, handler
from forge_actors.edges.gateway.plain import make_request

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE = Asker("page", "page-1")
STATIC = Path(assets.__file__).with_name("static")
SCRIPTS = sorted(STATIC.glob("*.js"))
DOCUMENTS = sorted(STATIC.glob("*.html"))
#: What makes markup, code or a style of a text.
FORBIDDEN = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "createContextualFragment",
    "DOMParser",
    "setHTML",
    "srcdoc",
    "eval(",
    "new Function",
    "javascript:",
    'setAttribute("style"',
    "cssText",
    "localStorage",
)


async def get(
    target: str, *, method: str = "GET", asker: Asker = PAGE, **headers: str
) -> Response:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    made = make_request(method, target, named)
    assert made is not None
    request = Request(made.method, made.path, made.query, named, b"", asker)
    return await handler.handle(request)


@pytest.mark.parametrize(
    "target", ["/", "/jobs", "/jobs/4f2k9x", "/repositories/app", "/usage", "/health"]
)
async def test_every_page_is_the_same_document(target: str) -> None:
    answer = await get(target)
    assert (answer.status, answer.content_type) == (200, "text/html; charset=utf-8")
    assert answer.body == (STATIC / "index.html").read_bytes()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("app.css", "text/css; charset=utf-8"),
        ("main.js", "text/javascript; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
async def test_a_file_is_sent_as_what_it_is(name: str, kind: str) -> None:
    answer = await get(f"/assets/{name}")
    assert (answer.status, answer.content_type) == (200, kind)
    assert answer.body == (STATIC / name).read_bytes()


@pytest.mark.parametrize(
    "target",
    [
        "/assets",
        "/assets/",
        "/assets/nothing.js",
        "/assets/index.html",
        "/assets/login.html",
        "/assets/__init__.py",
        "/assets/a/b.js",
        "/assets/%2fetc%2fpasswd",
        "/jobs/a/b",
        "/usage/all",
        "/timeline/x",
    ],
)
async def test_there_is_nothing_else(target: str) -> None:
    answer = await get(target)
    assert answer.status == 404
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("target", ["/", "/assets/main.js", "/nothing"])
@pytest.mark.parametrize("asker", [PAGE, NOBODY])
async def test_whatever_is_sent_runs_no_script_of_others(
    target: str, asker: Asker
) -> None:
    headers = (await get(target, asker=asker)).headers
    policy = dict(
        part.split(" ", 1) for part in headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert policy["trusted-types"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize("target", ["/", "/assets/app.css"])
async def test_a_browser_that_has_a_file_is_not_sent_it_again(target: str) -> None:
    first = await get(target)
    assert first.headers["cache-control"] == "private, no-cache"
    tag = first.headers["etag"]
    for wanted in (tag, f'"other", W/{tag}', "*"):
        again = await get(target, if_none_match=wanted)
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == tag
    assert (await get(target, if_none_match='"other"')).status == 200


def test_the_tag_of_a_file_is_that_of_its_bytes_alone() -> None:
    tags = [asset.tag for asset in assets.assets().values()]
    assert len(set(tags)) == len(tags) == len(list(STATIC.iterdir()))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_pages_are_only_read(method: str) -> None:
    answer = await get("/", method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_a_page_without_a_login_says_how_to_log_in() -> None:
    answer = await get("/jobs", asker=NOBODY)
    assert (answer.status, answer.content_type) == (401, "text/html; charset=utf-8")
    assert b"forge-actors open" in answer.body
    assert answer.headers["cache-control"] == "no-store"
    assert (await get("/assets/app.css", asker=NOBODY)).status == 200


# The way in


def login(gate: Gate, place: str = "/", **headers: str) -> Request:
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Request("GET", ("login",), f"ticket={gate.ticket(place)}", named)


async def test_a_browser_that_a_file_led_here_shows_its_cookie_afterwards() -> None:
    gate = Gate("t" * 43, "c", rate=200.0, now=lambda: 0.0)
    place = "/jobs/a?x='\"&y=1"
    asked = login(gate, place, sec_fetch_site="cross-site")
    answer = await gate.login(asked)
    assert answer.status == 200
    assert "SameSite=Strict" in answer.headers["set-cookie"]
    found = b'content="0;url=/jobs/a?x=&#x27;&quot;&amp;y=1"'
    assert found in answer.body
    assert answer.headers["content-security-policy"] == handler.POLICY


async def test_a_person_with_a_spent_link_is_told_how_to_get_another() -> None:
    gate = Gate("t" * 43, "c", rate=200.0, now=lambda: 0.0)
    asked = login(gate, accept="text/html,*/*")
    assert (await gate.login(asked)).status == 303
    answer = await gate.login(asked)
    assert (answer.status, answer.content_type) == (401, "text/html; charset=utf-8")
    assert b"forge-actors open" in answer.body


def test_the_gate_knows_who_opens_a_page_and_turns_nobody_away() -> None:
    gate = Gate("t" * 43, "c", rate=200.0, now=lambda: 0.0)
    for path in ((), ("jobs", "a"), ("assets", "main.js")):
        assert gate.admit(Request("GET", path, "", {})) == NOBODY


# What the files are


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_makes_no_markup_of_a_text(script: Path) -> None:
    text = script.read_text("ascii" if script.name == "text.js" else "utf-8")
    assert [each for each in FORBIDDEN if each in text] == []
    if script.name != "dom.js":
        # One maker of elements; everything else asks it.
        assert not re.search(r"createElement|\.setAttribute\(\"(?!aria-)", text)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_imports_what_is_there_and_nothing_from_elsewhere(
    script: Path,
) -> None:
    for place in re.findall(r"from \"([^\"]+)\"", script.read_text()):
        assert place.startswith("/assets/")
        assert (STATIC / place.removeprefix("/assets/")).exists()
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", script.read_text())
    assert script.read_text().count("\n") <= 400


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_has_no_script_or_style_of_its_own(document: Path) -> None:
    text = document.read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=", text)
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", text)
    assert set(scripts) <= {""}
    for place in re.findall(r"(?:src|href)=\"(/assets/[^\"]+)\"", text):
        assert (STATIC / place.removeprefix("/assets/")).exists()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("words.js", STATES),
        ("words.js", get_args(WaitingKind)),
        ("overview.js", get_args(ItemKind)),
        ("health.js", DIAGNOSTICS),
        ("workflows.js", get_args(WorkflowState)),
        ("workflows.js", get_args(StepState)),
    ],
)
def test_what_the_service_has_a_word_for_the_pages_say_in_words(
    script: str, words: Sequence[str]
) -> None:
    text = (STATIC / script).read_text()
    missing = [word for word in words if not re.search(rf"\b{word}: [\[\"]", text)]
    assert not missing
