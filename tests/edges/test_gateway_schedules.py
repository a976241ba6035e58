"""The routes of schedules: what a job may not say."""

from __future__ import annotations

import msgspec
import pytest

from forge_actors.edges.gateway.handling import handler
from forge_actors.edges.gateway.messages import Request, Response
from forge_actors.testing.control import FakeControl


async def asked(control: FakeControl, *path: str, job: str | None, body: object) -> int:
    headers = {} if job is None else {"forge-job": job}
    request = Request(
        "POST", ("v1", "schedules", *path), "", headers, msgspec.json.encode(body)
    )
    answer = await handler(control)(request)
    assert isinstance(answer, Response)
    return answer.status


@pytest.mark.parametrize("job", [None, "1abc"])
async def test_only_a_person_says_what_may_be_done_to_the_outside(
    job: str | None,
) -> None:
    control = FakeControl()
    plain = {"name": "a", "repo": "r", "every": "1h", "job": {"argv": ["x"]}}
    more = {**plain, "name": "b", "job": {"argv": ["x"], "authorised": ["push"]}}
    assert await asked(control, job=job, body=plain) == 201
    wanted = 201 if job is None else 409
    assert await asked(control, job=job, body=more) == wanted
    edit = {"schedule": {**more, "name": "a"}}
    wanted = 200 if job is None else 409
    assert await asked(control, "a", "edit", job=job, body=edit) == wanted
    wakes = {"name": "c", "repo": "r", "every": "1h", "job": {}, "wake": "fixer"}
    wanted = 201 if job is None else 409
    assert await asked(control, job=job, body=wakes) == wanted
    wanted = 200 if job is None else 409
    file = {"source": "/f", "schedules": [more]}
    assert await asked(control, "apply", job=job, body=file) == wanted
    assert await asked(control, "a", "edit", job=job, body={"schedule": more}) == 400
