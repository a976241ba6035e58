"""The resources and the prompts of the MCP server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from mcp.shared.exceptions import MCPError

from forge_actors.edges.gateway.mcp.prompts import PROMPTS
from forge_actors.edges.gateway.mcp.resources import KINDS, MAX_TEXT
from tests.edges.mcp_kit import called, leaves_generators, serving

if TYPE_CHECKING:
    from pathlib import Path

    from mcp import Client

pytestmark = leaves_generators
both = pytest.mark.parametrize("mode", ["auto", "legacy"])


async def read(client: Client, uri: str) -> str:
    [content] = (await client.read_resource(uri)).contents
    return content.text


async def submitted(client: Client) -> str:
    made = await called(client, "submit", repo="app", command=["make"], name="n\x1b[1m")
    return str(made["id"])


@both
async def test_jobs_are_listed_and_read_by_their_uris(
    mode: str, tmp_path: Path
) -> None:
    async with serving(tmp_path) as served, served.client(mode) as client:
        job = await submitted(client)
        served.control.begin(job)
        served.control.write(job, b"out\n")
        served.control.write(job, b"err\x1b[2J\n", stream="stderr")
        served.control.end(job, "failed", exit_code=3)
        listed = (await client.list_resources()).resources
        assert str(listed[-1].uri) == f"forge://jobs/{job}"
        assert "\x1b" not in listed[-1].name
        for each in listed:
            assert json.loads(await read(client, str(each.uri)))
        assert json.loads(await read(client, f"forge://jobs/{job}"))["exit_code"] == 3
        result = json.loads(await read(client, f"forge://jobs/{job}/result"))
        assert result["error"]["code"] == "EXIT_NONZERO"
        assert await read(client, f"forge://jobs/{job}/logs/stdout") == "out\n"
        assert await read(client, f"forge://jobs/{job[-4:]}/logs/stderr") == "err\n"
        templates = (await client.list_resource_templates()).resource_templates
        assert [each.uri_template for each in templates] == [
            kind.template for kind in KINDS
        ]


async def test_long_output_is_read_through_the_pointers_in_it(tmp_path: Path) -> None:
    whole = b"".join(b"%06d\n" % number for number in range(30_000))
    async with serving(tmp_path) as served, served.client() as client:
        job = await submitted(client)
        served.control.begin(job)
        served.control.write(job, whole)
        served.control.end(job)
        last = await read(client, f"forge://jobs/{job}/logs/stdout")
        assert last.endswith("029999\n")
        uri, found = f"forge://jobs/{job}/logs/stdout?offset=0", ""
        while uri:
            text = await read(client, uri)
            assert len(text) <= MAX_TEXT + 300
            uri = ""
            if text.startswith("[forge-actors: "):
                head, _, text = text.partition("\n")
                parts = head.strip("[]").split("; ")
                uri = next(
                    (p.partition(": ")[2] for p in parts if "what follows" in p), ""
                ).removeprefix("what follows: ")
            found += text
    assert found.encode() == whole


@pytest.mark.parametrize(
    "uri",
    [
        "forge://jobs/nowhere",
        "forge://jobs/../../etc/passwd",
        "forge://jobs//logs/stdout",
        "forge://jobs/j000001/logs/stdin",
        "forge://jobs/j000001/logs/stdout?offset=x",
        "file:///etc/passwd",
        "forge://elsewhere",
        "forge://[",
    ],
)
async def test_what_is_not_there_cannot_be_read(uri: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        await submitted(client)
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
    assert caught.value.error.data["code"] in ("NOT_FOUND", "INVALID_INPUT")
    assert caught.value.error.data["what_to_do"]


@both
async def test_every_prompt_is_given_with_and_without_its_arguments(
    mode: str, tmp_path: Path
) -> None:
    async with serving(tmp_path) as served, served.client(mode) as client:
        listed = (await client.list_prompts()).prompts
        assert [each.name for each in listed] == [each.name for each in PROMPTS]
        for prompt in listed:
            plain = await client.get_prompt(prompt.name)
            given = {each.name: "it\x1b[1m" for each in prompt.arguments}
            filled = await client.get_prompt(prompt.name, given)
            for answer in (plain, filled):
                text = answer.messages[0].content.text
                assert "{" not in text
                assert "`" in text
            assert '"it"' in text
        with pytest.raises(MCPError, match="there is no prompt"):
            await client.get_prompt("nothing")
        with pytest.raises(MCPError, match="is no argument"):
            await client.get_prompt("failed_job", {"jobb": "x"})
