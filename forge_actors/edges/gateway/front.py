"""What a service answers, by the first part of the path: each part has its handler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.edges.gateway.messages import Live, error_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.edges.gateway.messages import (
        Handler,
        Request,
        Response,
        Stream,
    )

#: What a browser is told of everything: it may take the words of a job for nothing but
#: what they are said to be, and keeps none of them without asking again.
TO_PAGES = {
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-cache",
    "cross-origin-resource-policy": "same-origin",
}


class Front:
    """The handler of everything that was added to it."""

    def __init__(self) -> None:
        self._parts: dict[str, tuple[Handler, Callable[[Request], bool]]] = {}

    def add(
        self,
        first: str,
        handler: Handler,
        holds: Callable[[Request], bool] = lambda _: False,
    ) -> None:
        """Answer paths that begin with `/first`, or `/` alone where that is empty.

        `holds` tells of a request whether it is kept open until something happens.
        """
        self._parts[first] = (handler, holds)

    async def __call__(self, request: Request) -> Response | Stream | Live:
        part = self._parts.get(_first(request))
        if part is None:
            path = "/" + "/".join(request.path)
            return error_response(404, "NO_SUCH_ROUTE", f"there is nothing at {path}")
        answer = await part[0](request)
        if request.asker.kind != "page" or isinstance(answer, Live):
            return answer
        return structs.replace(answer, headers={**TO_PAGES, **answer.headers})

    def holds(self, request: Request) -> bool:
        """Whether a request is kept open; asked before it is checked."""
        part = self._parts.get(_first(request))
        return part is not None and part[1](request)


def _first(request: Request) -> str:
    return request.path[0] if request.path else ""
