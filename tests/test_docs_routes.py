"""The reference of the HTTP interface: nothing is missing, and its examples hold."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from docs.making.route_examples import EXAMPLES, SOCKET
from docs.making.routes import HEAD, nouns
from docs.making.routes import pages as made_pages
from forge_actors.edges.gateway.openapi import document
from forge_actors.edges.gateway.routes import ROUTES
from tests.acceptance.conftest import limit, make_service
from tests.acceptance.service import CALL_SECONDS
from tests.acceptance.tcp import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

__all__ = ["limit", "make_service"]
TEMPLATE = """
[[template]]
name = "test"
parameters = { part = { default = "all", choices = ["all", "fast"] } }
job = { argv = ["echo", "${part}"] }
"""


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return dict(made_pages())


def test_every_route_with_what_it_takes_and_answers_is_there(
    pages: dict[str, str],
) -> None:
    divided = nouns(document(ROUTES))
    assert divided.keys() == EXAMPLES.keys()
    for route in ROUTES:
        path = route.template.replace("*}", "}")
        title = f"`{route.method} {path}`"
        assert f"[{title}](" in pages["reference/http.md"]
        noun = next(noun for noun, paths in divided.items() if path in paths)
        part = pages[f"reference/http-{noun}.md"].split(f"## {title}\n")[1]
        part = part.split("\n## ")[0]
        assert route.says in part
        for name in (*route.parameters, *route.headers):
            assert f"| `{name.lower()}` |" in part
        assert f"- {route.status}: " in part
        if route.takes is not None:
            assert f"- Body: [{route.takes.__name__}](" in part


def test_every_type_that_is_named_has_its_place(pages: dict[str, str]) -> None:
    types = pages["reference/http-types.md"]
    places = {name.lower() for name in re.findall(r"^## (\w+)$", types, re.MULTILINE)}
    for text in pages.values():
        assert {*re.findall(r"http-types\.md#(\w+)", text)} <= places


def test_errors_are_told_by_status_and_code(pages: dict[str, str]) -> None:
    for row in (
        "| 400 | `INVALID_INPUT` | The input is not valid.",
        "| 403 | `FORBIDDEN` | ",
        "| 404 | `NO_SUCH_ROUTE` | ",
        "| 409 | `REFUSED` | The request is valid, but the present state",
        "| 429 | `TOO_MANY_REQUESTS` | ",
        "| 503 | `STORE_FAILED` | The store could not save the change",
    ):
        assert f"\n{row}" in pages["reference/http.md"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="NOT RUN: no curl")
def test_the_example_of_each_noun_is_answered_as_shown(
    make_service: Callable[[str], LiveService],
    pages: dict[str, str],
) -> None:
    """Where the socket is on the page, there is the one of this service."""
    service = make_service(SETTINGS)
    service.start()
    _brings_a_template(service)
    usual = service.root / Path(SOCKET).relative_to("~").parent
    usual.parent.mkdir(parents=True)
    usual.symlink_to(service.home)
    for noun, example in EXAMPLES.items():
        shown = f"$ {example.command}\n{example.answer}\n"
        assert shown in pages[f"reference/http-{noun}.md"]
        answer = _run(example.command, service)
        for line in answer.splitlines():
            _looks_like(json.loads(example.answer), json.loads(line), noun)
    first, second = re.findall(r"^\$ (.+(?:\n    .+)*)", HEAD, re.MULTILINE)
    assert json.loads(_run(first, service))["ready"]
    port = service.json("status")["service"]["endpoint"].rpartition(":")[2]
    assert json.loads(_run(second.replace(":N/", f":{port}/"), service))["ready"]


def _brings_a_template(service: LiveService) -> None:
    app = service.add("app")
    (app / ".forge").mkdir()
    (app / ".forge/parts.toml").write_text(TEMPLATE)
    service.cli("repo", "trust", "app", "--yes", status=0)


def _run(command: str, service: LiveService) -> str:
    ended = subprocess.run(
        ["bash", "-c", command],
        env={"PATH": os.environ["PATH"], "HOME": str(service.root)},
        capture_output=True,
        timeout=CALL_SECONDS,
        check=True,
        text=True,
    )
    return ended.stdout


def _looks_like(shown: Any, told: Any, where: str) -> None:
    """All that is shown is there, and of the same type."""
    assert type(shown) is type(told), (where, shown, told)
    if isinstance(shown, dict):
        for name, value in shown.items():
            assert name in told, (where, name, told)
            _looks_like(value, told[name], f"{where}.{name}")
    elif isinstance(shown, list):
        for value in shown:
            assert told, where
            _looks_like(value, told[0], where)
