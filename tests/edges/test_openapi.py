"""The document of the interface, and whether the routes are as it says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest

from forge_actors.edges.gateway import output
from forge_actors.edges.gateway.messages import BYTES, JSON, JSON_LINES
from forge_actors.edges.gateway.openapi import Problem, document
from forge_actors.edges.gateway.routes import ROUTES
from forge_actors.edges.gateway.workflows import SVG
from tests.edges.routes_kit import open_api

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.edges.gateway.route import Route

every_route = pytest.mark.parametrize(
    "route", ROUTES, ids=[f"{route.method} {route.template}" for route in ROUTES]
)


@every_route
def test_a_route_says_what_it_takes_and_gives(route: Route) -> None:
    assert route.says.endswith(".")
    assert (route.gives is None) == (route.media in (BYTES, SVG))
    assert route.media in (JSON, JSON_LINES, BYTES, SVG)
    if route.method != "POST":
        assert route.takes is None
    else:
        assert route.takes is not None
    for parameter in route.described:
        assert parameter.says.endswith("."), parameter.name


def test_no_two_routes_are_called_the_same() -> None:
    paths = document(ROUTES)["paths"]
    operations = [one for path in paths.values() for one in path.values()]
    assert len(operations) == len(ROUTES)
    assert len({one["operationId"] for one in operations}) == len(ROUTES)


def test_every_reference_of_the_document_leads_somewhere() -> None:
    text = json.dumps(document(ROUTES))
    schemas = json.loads(text)["components"]["schemas"]
    for piece in text.split('"#/components/schemas/')[1:]:
        assert piece.partition('"')[0] in schemas


async def test_the_document_is_served(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        status, answer = await api("GET", "/openapi.json")
    assert status == 200
    assert answer["openapi"].startswith("3.1")
    assert answer == json.loads(json.dumps(document(ROUTES)))


async def test_an_error_is_as_the_document_says(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        for method, target in (
            ("GET", "/jobs/nothing"),
            ("GET", "/jobs?limit=no"),
            ("GET", "/jobs?state=no"),
            ("DELETE", "/jobs"),
            ("GET", "/nowhere"),
        ):
            status, answer = await api.raw(method, target)
            problem = msgspec.json.decode(answer, type=Problem)
            assert problem.status == status
            assert problem.type.endswith(problem.code)


def test_a_body_that_is_refused_is_no_body_of_the_document() -> None:
    schema = document(ROUTES)["components"]["schemas"][output.SeveralJobs.__name__]
    assert schema["additionalProperties"] is False


def test_each_type_has_a_name_of_its_own() -> None:
    """Of two that are called the same the document would tell where they are."""
    schemas = document(ROUTES)["components"]["schemas"]
    assert [name for name in schemas if "." in name] == []
