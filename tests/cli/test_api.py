"""`api`: what the service says of its own interface."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell


async def test_every_operation_is_a_line_and_a_part_is_described(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path):
        status, text, _ = await shell("api", "--json")
        document = json.loads(text)
        assert (status, document["openapi"]) == (0, "3.1.1")
        operations = sum(map(len, document["paths"].values()))
        _, text, _ = await shell("api")
        head, *lines = text.splitlines()
        assert head.split()[:2] == ["METHOD", "PATH"]
        assert len(lines) == operations
        assert "GET     /v1/jobs " in text

        status, text, _ = await shell("api", "jobs/{job}/wait")
        assert status == 0
        assert text.startswith("GET /v1/jobs/{job}/wait\n")
        assert "query   timeout: string  How long to wait" in text
        assert "200     Waited  (application/json)" in text
        assert "errors  400 401 403 404" in text
        assert "\nWaited\n" in text
        assert "    timed_out: boolean" in text
        assert "\nPauses\n" not in text, "nothing of it refers to that"
        same = await shell("api", "/v1/jobs/{job}/wait/")
        assert same == (0, text, "")


async def test_a_part_of_the_document_is_a_document(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path):
        _, text, _ = await shell("api", "/v1/pause", "--json")
        part = json.loads(text)
        assert list(part["paths"]) == ["/v1/pause"]
        schemas = part["components"]["schemas"]
        assert {"Pauses", "PauseView", "Scope", "Problem"} == set(schemas)
        assert part["info"]["title"] == "Forge Actors"
        status, out, err = await shell("api", "/v1/job")
        assert (status, out) == (2, "")
        assert "nothing is answered at /v1/job;" in err


async def test_without_a_service_it_says_so(shell: Shell) -> None:
    status, out, _ = await shell("api")
    assert (status, out) == (4, "")
