"""The routes of trust and templates: what a job may not say."""

from __future__ import annotations

from typing import Any

import msgspec

from forge_actors.domain.templates import Parameter, TemplateView
from forge_actors.domain.trust import TrustView
from forge_actors.edges.gateway.handling import handler
from forge_actors.edges.gateway.messages import Request, Response
from forge_actors.testing.control import FakeControl

VIEW = TrustView(
    repo="app",
    path="/srv/app",
    state="untrusted",
    problem=None,
    digest="d1",
    trusted=None,
    trusted_at=None,
    authorised=[],
    files=[],
    templates=[],
    schedules=[],
    workflows=[],
    secrets=[],
    effects=[],
)

TRUSTED = "repositories/app/workflows/ship"


def control() -> FakeControl:
    made = FakeControl()
    made.brought["app"] = VIEW
    made.kept_templates = [TemplateView("test", "app", "", {}, {"argv": ["x"]}, [])]
    return made


async def asked(
    made: FakeControl, method: str, path: str, job: str | None, body: object = None
) -> tuple[int, Any]:
    headers = {} if job is None else {"forge-job": job}
    data = b"" if body is None else msgspec.json.encode(body)
    request = Request(method, ("v1", *path.split("/")), "", headers, data)
    answer = await handler(made)(request)
    assert isinstance(answer, Response)
    return answer.status, msgspec.json.decode(answer.body)


async def test_a_job_looks_at_what_there_is_and_trusts_nothing() -> None:
    made = control()
    place, wish = "repositories/app/trust", {"digest": "d1"}
    assert (await asked(made, "GET", place, "1abc"))[0] == 200
    status, said = await asked(made, "POST", place, "1abc", wish)
    assert (status, "a person can" in str(said)) == (409, True)
    assert made.brought["app"].state == "untrusted"
    assert (await asked(made, "POST", place, None, {"digest": "d2"}))[0] == 409
    assert (await asked(made, "POST", place, None, wish))[0] == 200
    assert made.brought["app"].state == "trusted"
    assert (await asked(made, "DELETE", place, "1abc"))[0] == 409
    assert (await asked(made, "DELETE", place, None))[0] == 200


async def test_a_job_that_submits_by_a_template_passes_for_nobody_else() -> None:
    made = control()
    place, wish = "templates/test/submit", {"repo": "app", "origin": "cli"}
    assert (await asked(made, "POST", place, None, wish))[0] == 201
    assert (await asked(made, "POST", place, "1abc", wish))[0] == 201
    parent = {"job": "2xyz", "attempt": 1, "fence": 1}
    other = {**wish, "parent": parent}
    assert (await asked(made, "POST", place, "1abc", other))[0] == 400
    assert (await asked(made, "POST", place, "2xyz", other))[0] == 201
    origins = [wanted.origin for _, wanted in made.by_template]
    assert origins == ["cli", "job:1abc", "cli"]
    assert (await asked(made, "POST", place, None, {"repo": "./app"}))[0] == 400
    assert (await asked(made, "GET", "templates/test", None))[1]["name"] == "test"
    assert len((await asked(made, "GET", "templates", None))[1]["templates"]) == 1


async def batch(made: FakeControl, *lines: dict[str, Any]) -> tuple[int, Any]:
    data = b"\n".join(map(msgspec.json.encode, lines))
    query = "base=%2Fsrv"
    request = Request("POST", ("v1", "batch"), query, {"forge-job": "1abc"}, data)
    answer = await handler(made)(request)
    assert isinstance(answer, Response)
    return answer.status, msgspec.json.decode(answer.body)


async def test_a_batch_has_jobs_of_templates_among_others() -> None:
    made = control()
    part = {"part": Parameter()}
    view = TemplateView("test", "app", "", part, {"argv": ["make"]}, [])
    made.kept_templates = [view]
    await made.add_repository("/srv/app")
    plain = {"repo": "app", "argv": ["x", "template"], "name": "first"}
    by = {"template": "test", "repo": "app", "values": {"part": "p"}}
    status, told = await batch(
        made, plain, {**by, "after": ["first"], "labels": ["l"], "timeout": "5m"}
    )
    assert status == 201, told
    first, second = (job["id"] for job in told["jobs"])
    request = made.requests[second]
    assert (request.argv, request.after, request.labels, request.timeout) == (
        ["make", "p"],
        ["first"],
        ["l"],
        "5m",
    )
    assert (request.origin, made.requests[first].argv) == (
        "job:1abc",
        ["x", "template"],
    )
    for line, said in (
        ({**by, "values": {"port": "p"}}, "line 2: values.port: is none"),
        ({**by, "argv": ["x"]}, "line 2: argv: is not a known field"),
        ({**by, "template": "tset"}, "line 2: "),
    ):
        status, told = await batch(made, plain, line)
        assert (status >= 400, said in str(told)) == (True, True), told
    assert len(made.requests) == 2


async def test_no_file_of_schedules_passes_for_a_trusted_repository() -> None:
    body = {"source": "trust:1abc", "schedules": []}
    status, _ = await asked(control(), "POST", "schedules/apply", None, body)
    assert status == 400


async def test_a_workflow_that_a_job_begins_is_of_that_job() -> None:
    made = control()
    plain = {"workflow": {"name": "w", "steps": [{"name": "a", "gate": "Go?"}]}}
    for place, body in (("workflows", plain), (f"{TRUSTED}/run", {})):
        for job, origin in ((None, "cli"), ("1abc", "job:1abc")):
            status, told = await asked(made, "POST", place, job, body)
            assert (status, told["origin"]) == (201, origin)
