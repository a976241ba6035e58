"""The routes of controllers: what a job may do, and what only a person may."""

from __future__ import annotations

import msgspec

from forge_actors.edges.gateway.handling import handler
from forge_actors.edges.gateway.messages import Request, Response
from forge_actors.testing.control import FakeControl

FIXER = {"name": "fixer", "prompt": "Go on.", "job": "1abc"}


async def asked(
    control: FakeControl,
    method: str,
    *path: str,
    job: str | None = None,
    body: object = None,
) -> tuple[int, object]:
    headers = {} if job is None else {"forge-job": job}
    content = b"" if body is None else msgspec.json.encode(body)
    request = Request(method, ("v1", "controllers", *path), "", headers, content)
    answer = await handler(control)(request)
    assert isinstance(answer, Response)
    return answer.status, msgspec.json.decode(answer.body)


async def test_a_job_speaks_for_itself_and_a_person_for_all() -> None:
    control = FakeControl()
    assert (await asked(control, "POST", job="1xyz", body=FIXER))[0] == 409
    assert (await asked(control, "POST", job="1abc", body=FIXER))[0] == 201
    for method, path, body in (
        ("POST", ("fixer", "wake"), {}),
        ("POST", ("fixer", "resume"), None),
        ("DELETE", ("fixer",), None),
    ):
        status, told = await asked(control, method, *path, job="1abc", body=body)
        assert (status, "a person can" in str(told)) == (409, True)
    said = {"disposition": "wait", "note": "x"}
    assert (await asked(control, "POST", "tell", body=said))[0] == 404
    assert (await asked(control, "POST", "tell", job="1abc", body=said))[0] == 200
    own = ("fixer", "tell")
    assert (await asked(control, "POST", *own, job="1xyz", body=said))[0] == 409
    assert (await asked(control, "POST", *own, body=said))[0] == 200
    wrong = {"disposition": "sleep"}
    assert (await asked(control, "POST", *own, body=wrong))[0] == 400
    status, woken = await asked(control, "POST", "fixer", "wake", body={})
    assert status == 200
    status, told = await asked(control, "GET", "fixer", "wakes")
    assert (status, told) == (200, {"wakes": [woken]})
    assert (await asked(control, "DELETE", "fixer"))[0] == 200
    assert await asked(control, "GET") == (200, {"controllers": [], "next": None})
