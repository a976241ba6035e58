"""Which part of a service answers a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.gateway.front import Front
from forge_actors.edges.gateway.messages import (
    OWNER,
    Asker,
    Request,
    Response,
    Stream,
)

if TYPE_CHECKING:
    from forge_actors.edges.gateway.messages import Send


def to(*path: str, asker: Asker = OWNER) -> Request:
    return Request("GET", path, "", {}, asker=asker)


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


async def test_a_browser_takes_no_word_of_a_job_for_something_else() -> None:
    async def produce(_: Send) -> None:
        raise AssertionError

    async def streamed(_: Request) -> Stream:
        return Stream(produce, headers={"cache-control": "no-store"})

    front = Front()
    front.add("v1", answered)
    front.add("logs", streamed)
    page = Asker("page", "page-1")
    for path, kept in (("v1", "private, no-cache"), ("logs", "no-store")):
        answer = await front(to(path, asker=page))
        assert isinstance(answer, Response | Stream)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == kept
    answer = await front(to("v1"))
    assert isinstance(answer, Response)
    assert answer.headers == {}
