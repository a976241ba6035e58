"""Which part of a service answers a path."""

from __future__ import annotations

from forge_actors.edges.gateway.front import Front
from forge_actors.edges.gateway.messages import Request, Response


def to(*path: str) -> Request:
    return Request("GET", path, "", {})


async def answered(request: Request) -> Response:
    return Response(200, "/".join(request.path).encode())


async def test_each_part_answers_what_begins_with_its_name() -> None:
    front = Front()
    front.add("v1", answered, lambda request: request.path[-1] == "wait")
    front.add("", answered)
    for path in (("v1", "jobs"), ()):
        answer = await front(to(*path))
        assert answer == Response(200, "/".join(path).encode())
    assert front.holds(to("v1", "wait"))
    assert not front.holds(to("v1", "jobs"))


async def test_where_nobody_answers_that_is_said() -> None:
    front = Front()
    answer = await front(to("elsewhere"))
    assert isinstance(answer, Response)
    assert answer.status == 404
    assert b"/elsewhere" in answer.body
    assert not front.holds(to("elsewhere"))
