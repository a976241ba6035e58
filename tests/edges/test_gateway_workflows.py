"""The routes of workflows: what a job may not say, and whose they are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from forge_actors.edges.gateway.handling import handler
from forge_actors.edges.gateway.messages import Request, Response
from forge_actors.testing.control import FakeControl

JOB = "1abc"


async def posted(
    made: FakeControl, path: str, job: str | None, body: object
) -> tuple[int, Any]:
    headers = {} if job is None else {"forge-job": job}
    parts = ("v1", "workflows", *path.split())
    request = Request("POST", parts, "", headers, msgspec.json.encode(body))
    answer = await handler(made)(request)
    assert isinstance(answer, Response)
    return answer.status, msgspec.json.decode(answer.body)


@pytest.mark.parametrize(
    "fields",
    [
        {"steps": [{"name": "a", "job": {"authorised": ["publish"]}}]},
        {
            "kind": "campaign",
            "items": {"list": ["a"]},
            "template": {"job": {"authorised": ["publish"]}},
        },
        {"kind": "goal", "act": {"job": {"authorised": ["push"]}}},
        {"kind": "goal", "check": {"job": {"authorised": ["push"]}}},
    ],
)
async def test_only_a_person_says_what_a_workflow_may_do(
    fields: dict[str, Any],
) -> None:
    made, body = FakeControl(), {"workflow": {"name": "w", **fields}}
    status, said = await posted(made, "", JOB, body)
    assert (status, "a person can" in str(said)) == (409, True)
    assert made.kept_workflows == {}
    assert (await posted(made, "", None, body))[0] == 201


async def test_a_workflow_is_of_the_job_that_begins_it_and_asks_a_person() -> None:
    made = FakeControl()
    ask = [{"name": "ask", "gate": "Go on?"}]
    for name, job, origin in (("mine", None, "cli"), ("its", JOB, f"job:{JOB}")):
        body = {"workflow": {"name": name, "steps": ask}}
        status, view = await posted(made, "", job, body)
        assert (status, view["origin"]) == (201, origin)
    yes = {"step": "ask", "yes": True}
    assert (await posted(made, "its answer", JOB, yes))[0] == 409
    assert (await posted(made, "its answer", None, yes))[0] == 200
