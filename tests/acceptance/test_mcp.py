"""Agents at a real service: through the program that they start, and over HTTP."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import trio
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from forge_actors.edges.gateway.mcp.tools import fingerprint
from tests.acceptance.bench import wait_until_ended
from tests.acceptance.service import PROGRAM
from tests.edges.mcp_kit import called, leaves_generators, refused

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.acceptance.service import LiveService

pytestmark = leaves_generators
#: What loads only where there is an MCP server.
EXTRA = {"mcp", "mcp_types", "pydantic", "starlette", "httpx2", "uvicorn"}
WITHOUT = "sys.modules['mcp'] = None"
SERVED = "[gateway]\nmcp = true\n"
#: Writes down what a service had loaded when it ended.
TELLING = (
    "import atexit\n"
    "atexit.register(lambda: print('loaded:', *sys.modules, file=sys.stderr))"
)


@pytest.fixture
def service(make_service: Callable[[str], LiveService]) -> LiveService:
    made = make_service(SERVED)
    made.start()
    return made


def agent(service: LiveService, folder: Path | None = None) -> StdioServerParameters:
    args = ["mcp", "--home", str(service.home)]
    env = {"PATH": os.environ["PATH"], "HOME": str(service.root)}
    cwd = folder or service.root
    return StdioServerParameters(command=PROGRAM, args=args, env=env, cwd=cwd)


async def test_an_agent_has_its_work_done(service: LiveService) -> None:
    place = service.repository("app")
    async with Client(agent(service, place), mode="legacy") as client:
        error = await refused(client, "submit", command=["true"], repo="elsewhere")
        assert error["code"] == "NOT_FOUND"
        added = await called(client, "add_repository", path=str(place))
        assert added["repository"]["name"] == "app"
        script = "echo to stdout; echo to stderr >&2; exit 3"
        made = await called(client, "submit", command=["bash", "-c", script])
        ended = await called(client, "wait", jobs=[made["id"]])
        assert ended["jobs"][0]["exit_code"] == 3
        for stream in ("stdout", "stderr"):
            told = await client.call_tool("logs", {"job": made["id"], "stream": stream})
            assert told.content[1].text == f"to {stream}\n"
        uri = f"forge://jobs/{made['id']}/result"
        [result] = (await client.read_resource(uri)).contents
        assert json.loads(result.text)["state"] == "failed"
        status = service.json("status")
        assert status["mcp"]["sessions"]["used"] == 1
        assert status["mcp"]["fingerprint"] == fingerprint()


async def test_agents_come_over_tcp_with_the_token(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("[gateway]\nport = 0\nmcp = true\n")
    service.start()
    endpoint = service.json("status")["service"]["endpoint"]
    token = (service.home / "api-token").read_text().strip()
    for told, good in ((token, True), ("x" * len(token), False)):
        headers = {"authorization": f"Bearer {told}"}
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as http:
            if good:
                url = f"{endpoint}/mcp"
                streams = streamable_http_client(url, http_client=http)
                async with Client(streams, mode="legacy") as client:
                    assert (await called(client, "jobs"))["jobs"] == []
            else:
                answer = await http.post(f"{endpoint}/mcp", json={})
                assert answer.status_code == 401


CHILD = """
forge-actors mcp <<'END'
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",\
"capabilities":{},"clientInfo":{"name":"t","version":"0"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"submit",\
"arguments":{"command":["true"],"name":"child"}}}
END
"""


def test_a_job_that_submits_through_it_is_the_parent(service: LiveService) -> None:
    service.add("app")
    path = f"PATH={os.path.dirname(PROGRAM)}:{os.environ['PATH']}"
    parent = service.bash("app", CHILD, "--env", path)
    assert service.end_of(parent)["state"] == "succeeded"
    answers = [json.loads(line) for line in service.log(parent).splitlines()]
    [made] = [
        json.loads(each["result"]["content"][0]["text"])
        for each in answers
        if each["id"] == 2
    ]
    child = service.end_of(made["id"])
    assert (child["origin"], child["name"]) == (f"job:{parent}", "child")
    assert (parent, "job_delegated") in [(e.job, e.kind) for e in service.events()]


async def test_a_stop_ends_the_sessions_of_agents(service: LiveService) -> None:
    service.add("app")
    answers: list[Any] = []
    async with Client(agent(service), mode="legacy") as client:
        made = await called(
            client, "submit", repo="app", command=["sleep", "60"], read_only=True
        )

        async def wait() -> None:
            asked = {"jobs": [made["id"]], "timeout": 3000}
            answers.append(await client.call_tool("wait", asked))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.to_thread.run_sync(service.until, made["id"], "job_running")
            await trio.to_thread.run_sync(service.end)
    assert [answer.is_error for answer in answers] == [True]
    assert answers[0].structured_content["error"]["code"] == "UNAVAILABLE"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_crash_of_the_service_does_not_end_the_session_of_an_agent(
    service: LiveService, mode: Any
) -> None:
    service.add("app")
    async with Client(agent(service), mode=mode) as client:
        made = await called(client, "submit", repo="app", command=["echo", "x"])
        service.kill()
        service.start()
        ended = await called(client, "wait", jobs=[made["id"]])
        assert ended["jobs"][0]["state"] == "succeeded"


def test_the_socket_is_made_again_when_it_is_lost(service: LiveService) -> None:
    os.unlink(service.home / "mcp.sock")
    done = service.cli("mcp", status=0)
    assert done.err == ""


def test_a_service_without_the_extra_works_and_says_so(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service(SERVED)
    service.start_patched(f"{WITHOUT}\n{TELLING}")
    service.add("app")
    assert service.end_of(service.bash("app", "true"))["state"] == "succeeded"
    told = service.json("status")["mcp"]
    assert told["available"] is False
    assert "pip install 'forge-actors[gateway]'" in told["note"]
    done = service.cli("mcp", status=3)
    assert "forge-actors[gateway]" in done.err
    assert not (service.home / "mcp.sock").exists()
    service.cli("stop", "--jobs", status=0)
    assert wait_until_ended(service.pid)
    log = (service.home / "service.log").read_text()
    [loaded] = [line for line in log.splitlines() if line.startswith("loaded:")]
    assert not {name.partition(".")[0] for name in loaded.split()} & (EXTRA - {"mcp"})


def test_it_can_be_turned_off(make_service: Callable[[str], LiveService]) -> None:
    service = make_service("[gateway]\nmcp = false\n")
    service.start_patched(TELLING)
    assert "mcp = true" in service.cli("mcp", status=3).err
    service.cli("stop", "--jobs", status=0)
    assert wait_until_ended(service.pid)
    log = (service.home / "service.log").read_text()
    [loaded] = [line for line in log.splitlines() if line.startswith("loaded:")]
    assert not {name.partition(".")[0] for name in loaded.split()} & EXTRA


def test_an_extra_that_cannot_be_loaded_is_no_absent_one(
    make_service: Callable[[str], LiveService],
) -> None:
    done = make_service(SERVED).start_refused("sys.modules['starlette'] = None")
    assert done.status == 1
    assert "the extra gateway is installed, but cannot be loaded" in done.err
    assert "Traceback" not in done.err
