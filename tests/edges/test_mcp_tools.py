"""The tools of the MCP server, called with the client of the SDK."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio
from mcp.shared.exceptions import MCPError
from msgspec import structs

from forge_actors.domain.effect_views import EffectsView
from forge_actors.domain.errors import StoreFailed
from forge_actors.edges.gateway.mcp import arguments, tools
from forge_actors.edges.gateway.mcp.answers import MAX_ANSWER
from forge_actors.edges.gateway.mcp.tools import TOOLS
from tests.edges.mcp_kit import (
    HEADERS,
    URL,
    called,
    leaves_generators,
    message,
    opened,
    refused,
    serving,
)

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = leaves_generators
both = pytest.mark.parametrize("mode", ["auto", "legacy"])
ways = pytest.mark.parametrize("way", ["client", "stream_client"])

HOSTILE = "a\x1b[31mb\x07\u202ec\u2066d\U000e0041e\x00<script>"
HARMLESS = "abcde<script>"


@both
@ways
async def test_a_job_goes_from_its_submission_to_its_output(
    mode: str, way: str, tmp_path: Path
) -> None:
    async with serving(tmp_path) as served, getattr(served, way)(mode) as client:
        made = await called(client, "submit", repo="app", command=["make"])
        job = made["id"]
        served.control.begin(job)
        served.control.write(job, b"building\n")
        listed = await called(client, "jobs", active=True, mine=True)
        assert [row["id"] for row in listed["jobs"]] == [job]
        served.control.end(job, "failed", exit_code=2)
        ended = await called(client, "wait", jobs=[job])
        assert (ended["ended"], ended["jobs"][0]["exit_code"]) == (True, 2)
        shown = await called(client, "show", job=job)
        assert (shown["argv"], shown["origin"]) == (["make"], "mcp")
        told = await client.call_tool("logs", {"job": job})
        assert told.content[1].text == "building\n"
        assert json.loads(told.content[0].text)["ended"]


@both
@ways
async def test_the_tools_are_told_of_as_they_are(
    mode: str, way: str, tmp_path: Path
) -> None:
    async with serving(tmp_path) as served, getattr(served, way)(mode) as client:
        listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == [tool.name for tool in TOOLS]
    for tool in listed:
        assert tool.input_schema["type"] == "object"
        assert "$ref" not in json.dumps(tool.input_schema)
        assert len(tool.description or "") > 80
    changing = [tool.name for tool in listed if not tool.annotations.read_only_hint]
    assert changing == [
        *("add_repository", "submit", "batch", "submit_template", "cancel"),
        *("retry", "approve"),
        *("workflows", "epics", "schedules", "end_turn"),
    ]


@pytest.mark.parametrize("field", ["name", "description", "arguments", "title"])
def test_the_fingerprint_changes_with_what_decides_on_a_call(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tools.fingerprint()
    value: Any = arguments.Usage if field == "arguments" else "other"
    changed = structs.replace(TOOLS[0], **{field: value})
    monkeypatch.setattr(tools, "TOOLS", (changed, *TOOLS[1:]))
    assert len(before) == 64
    assert (tools.fingerprint() != before) == (field != "title")


async def test_the_work_of_an_agent_can_have_to_pass_a_check(tmp_path: Path) -> None:
    asked = {"agent": "codex", "prompt": "Go.", "verify": "make test"}
    async with serving(tmp_path) as served, served.client("legacy") as client:
        made = await called(client, "submit", repo="app", command=[], **asked)
        request = served.control.requests[made["id"]]
    assert {name: getattr(request, name) for name in asked} == asked


async def test_every_tool_answers(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        control = served.control
        await called(client, "add_repository", path="/srv/app")
        rows = (await called(client, "repositories"))["repositories"]
        assert [row["name"] for row in rows] == ["app"]
        new = [
            {"command": ["a"], "repo": "app", "name": "first"},
            {"command": ["b"], "repo": "app", "after": ["first"], "kind": "check"},
        ]
        one, two = [j["id"] for j in (await called(client, "batch", jobs=new))["jobs"]]
        assert control.requests[two].after == ["first"]
        why = await called(client, "why", job=one)
        assert why["sentence"] == "It waits its turn."
        control.end(one, "failed", exit_code=1)
        [again] = (await called(client, "retry", jobs=[one]))["jobs"]
        assert again["retry_of"] == one
        ended = (await called(client, "cancel", jobs=[two]))["jobs"]
        assert [row["state"] for row in ended] == ["cancelled"]
        used = await called(client, "usage", by="repo")
        assert used["by"] == "repo"


@pytest.mark.parametrize(
    ("decision", "text", "state"),
    [("approve", None, "queued"), ("answer", "42", "queued"), ("deny", "no", "failed")],
)
async def test_a_question_is_answered(
    decision: str, text: str | None, state: str, tmp_path: Path
) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        made = await called(client, "submit", repo="app", command=["x"])
        served.control.end(made["id"], "waiting_for_approval", exit_code=None)
        row = await called(
            client, "approve", job=made["id"], decision=decision, text=text
        )
        assert row["job"]["state"] == state
        if decision != "deny":
            assert served.control.answers == {made["id"]: text}


@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_no_agent_allows_what_only_a_person_may(
    decision: str, tmp_path: Path
) -> None:
    told = {"parent": {"job": "j9", "attempt": 1, "fence": 1}}
    async with serving(tmp_path) as served:
        async with (
            served.client("legacy") as by_http,
            served.stream_client() as by_stream,
            served.stream_client(introduction=told) as within_a_job,
        ):
            made = await called(by_http, "submit", repo="app", command=["x"])
            served.control.end(made["id"], "waiting_for_approval", exit_code=None)
            held = EffectsView(automated=True, declared=["push"], held_back=["push"])
            view = structs.replace(served.control.views[made["id"]], effects=held)
            served.control.views[made["id"]] = view
            for client in (by_http, by_stream, within_a_job):
                error = await refused(
                    client, "approve", job=made["id"], decision=decision
                )
                assert error["code"] == "REFUSED"
        assert served.control.views[made["id"]].state == "waiting_for_approval"


# Errors


@both
async def test_an_error_says_what_to_do(mode: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client(mode) as client:
        error = await refused(client, "show", job="nowhere")
        assert error["code"] == "NOT_FOUND"
        assert "`jobs`" in error["what_to_do"]
        error = await refused(client, "submit", repo="app", comand=["x"])
        assert "did you mean 'command'" in error["message"]
        error = await refused(client, "submit", repo="app", command=["x"], kind="chek")
        assert (error["field"], "check" in error["allowed"]) == ("kind", True)
        error = await refused(client, "submit", repo="../app", command=["x"])
        assert "relative" in error["message"]
        made = await called(client, "submit", repo="app", command=["x"])
        error = await refused(client, "retry", jobs=[made["id"]])
        assert error["code"] == "REFUSED"
        error = await refused(
            client, "approve", job=made["id"], decision="answer", text=""
        )
        assert error["field"] == "text"
        served.control.failure = StoreFailed()
        error = await refused(client, "jobs")
        assert "doctor" in error["what_to_do"]
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool("rm", {})


async def test_what_goes_wrong_inside_stays_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        served.control.failure = RuntimeError("the secret of the house")
        error = await refused(client, "jobs")
    assert "secret" not in json.dumps(error)
    assert "the secret of the house" in caplog.text


# Bounds, and what others wrote


async def test_hostile_text_is_harmless_everywhere(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        made = await called(
            client, "submit", repo="app", command=[HOSTILE], name=HOSTILE, labels=["l"]
        )
        job = made["id"]
        served.control.begin(job)
        served.control.write(job, HOSTILE.encode())
        for tool, arguments in (
            ("show", {"job": job}),
            ("jobs", {}),
            ("logs", {"job": job}),
            ("wait", {"jobs": [job], "timeout": 0}),
        ):
            answer = await client.call_tool(tool, arguments)
            text = "\n".join(block.text for block in answer.content)
            assert HARMLESS in text
            assert not set(text) & set("\x1b\x07\x00\u202e\u2066\U000e0041"), tool


async def test_secrets_are_taken_out_of_output(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        job = (await called(client, "submit", repo="app", command=["x"]))["id"]
        served.control.begin(job)
        served.control.write(job, b"API_TOKEN=ghp_" + b"a1" * 20 + b"\n")
        answer = await client.call_tool("logs", {"job": job})
    assert answer.content[1].text == "API_TOKEN=[redacted]\n"


async def test_no_answer_is_larger_than_an_agent_can_read(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        long = "\N{SNOWMAN}" * 3000
        new = {"repo": "app", "command": [long] * 100, "name": long[:200]}
        ids = [(await called(client, "submit", **new))["id"] for _ in range(60)]
        shown = await called(client, "show", job=ids[0])
        assert shown["cut"] is True
        assert shown["more"]["whole"] == f"forge://jobs/{ids[0]}"
        found: list[str] = []
        page: Any = {"next": None}
        while "next" in page:
            page = await called(client, "jobs", limit=50, before=page["next"])
            found += [row["id"] for row in page["jobs"]]
            assert "cut" not in page
        assert found == ids[::-1]
        waited = await called(client, "wait", jobs=ids, timeout=0)
        assert [row["id"] for row in waited["jobs"]] == ids
        for answer in (shown, page, waited):
            text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
            assert len(text) <= MAX_ANSWER
        error = await refused(client, "jobs", limit=51)
        assert error["field"] == "limit"


async def test_output_is_read_piece_by_piece_without_a_gap(tmp_path: Path) -> None:
    whole = "".join(f"line {number}\n" for number in range(3000))
    async with serving(tmp_path) as served, served.client() as client:
        job = (await called(client, "submit", repo="app", command=["x"]))["id"]
        served.control.begin(job)
        served.control.write(job, whole.encode())
        served.control.end(job)
        found, offset, ended = "", 0, False
        while not ended:
            answer = await client.call_tool(
                "logs", {"job": job, "offset": offset, "limit": 10_000}
            )
            head = json.loads(answer.content[0].text)
            assert head["offset"] == offset
            offset, ended = head["next_offset"], head["ended"]
            found += answer.content[1].text
        last = await client.call_tool("logs", {"job": job, "limit": 10})
    assert found == whole
    assert whole.endswith(last.content[1].text)
    assert len(last.content[1].text) == 10
    # It fills its limit, and is the end all the same: nobody has to ask once more.
    assert json.loads(last.content[0].text)["ended"]


# Waiting


@both
@ways
async def test_a_wait_is_held_and_tells_its_progress(
    mode: str, way: str, tmp_path: Path
) -> None:
    told: list[tuple[float, float | None, str | None]] = []
    async with serving(tmp_path) as served, getattr(served, way)(mode) as client:
        control = served.control
        jobs = [
            (await called(client, "submit", repo="app", command=["x"]))["id"]
            for _ in range(2)
        ]
        heard = trio.Event()

        async def progress(
            done: float, total: float | None, message: str | None
        ) -> None:
            nonlocal heard
            told.append((done, total, message))
            heard.set()

        async def play() -> None:
            nonlocal heard
            for job in jobs:
                await heard.wait()
                heard = trio.Event()
                control.end(job)
                control.emit("job_succeeded", job=job, repo="app")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(play)
            answer = await client.call_tool(
                "wait", {"jobs": jobs}, progress_callback=progress
            )
    assert answer.structured_content["ended"] is True
    assert told[0] == (0.0, 2, "0 of 2 have ended, 0 run")
    assert told[1][2] == "1 of 2 have ended, 0 run"
    assert [done for done, _, _ in told] == sorted({done for done, _, _ in told})


@both
async def test_a_wait_that_takes_too_long_says_so(mode: str, tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client(mode) as client:
        made = await called(client, "submit", repo="app", command=["x"])
        answer = await called(client, "wait", jobs=[made["id"]], timeout=0.01)
    assert answer["ended"] is False
    assert "again" in answer["next_step"]


# Who calls


async def test_a_job_that_submits_names_itself_as_the_parent(tmp_path: Path) -> None:
    parent = {"job": "j000009", "attempt": 2, "fence": 7}
    told = {"folder": "/srv/app/src", "parent": parent}
    async with serving(tmp_path) as served:
        async with served.stream_client(introduction=told) as client:
            made = await called(client, "submit", command=["x"])
        request = served.control.requests[made["id"]]
    assert (request.repo, request.cwd) == ("/srv/app/src", "/srv/app/src")
    assert request.origin == "job:j000009"
    assert request.parent is not None
    assert request.parent.fence == 7


async def test_a_client_of_http_says_of_which_job_it_is(tmp_path: Path) -> None:
    headers = {**HEADERS, "forge-job": "j000009"}
    async with serving(tmp_path) as served, served.http() as http:
        session = await opened(http, headers)
        job = {"repo": "app", "command": ["x"]}
        asked = message("tools/call", name="submit", arguments=job)
        answer = await http.post(URL, json=asked, headers=session)
        assert answer.status_code == 200
        [request] = served.control.requests.values()
    assert request.origin == "job:j000009"


async def test_without_a_folder_a_repository_has_to_be_named(tmp_path: Path) -> None:
    async with serving(tmp_path) as served, served.client() as client:
        error = await refused(client, "submit", command=["x"])
    assert error["field"] == "repo"
