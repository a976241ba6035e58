"""A route: a method and a path, what it takes and gives, and what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.edges.gateway.messages import JSON
from forge_actors.edges.gateway.parameters import Parameter, described
from forge_actors.edges.gateway.tags import IF_NONE_MATCH

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Verb
    from forge_actors.edges.gateway.messages import Request


class Route:
    """A method and a path, names in place of its variable parts, and what they do.

    `says` is what it is for, in a sentence. `parameters` are those of the query.
    `takes` is the type of the body, `gives` that of the answer: of each of its lines,
    where `media` is that of JSON lines, and none where it is bytes. `headers` are those
    that mean something here. `errors` are the statuses of what can go wrong, besides
    what can with every request. What is `tagged` has an ETag.

    `holds` says whether a request is kept open until something happens elsewhere; a
    name says that this parameter asks for it.
    """

    def __init__(
        self,
        method: str,
        path: str,
        verb: Verb,
        parameters: tuple[str | Parameter, ...] = (),
        *,
        says: str = "",
        takes: Any = None,
        gives: Any = None,
        status: int = 200,
        media: str = JSON,
        takes_media: str = JSON,
        headers: tuple[str, ...] = (),
        errors: tuple[int, ...] = (404, 409),
        tagged: bool = False,
        holds: bool | str = False,
    ) -> None:
        self.method = method
        self.template = path
        self.path = tuple(path.split("/")[1:])
        self.verb = verb
        self.described = tuple(map(described, parameters))
        #: Their names.
        self.parameters = tuple(one.name for one in self.described)
        self.says = says
        self.takes = takes
        self.gives = gives
        self.status = status
        self.media = media
        self.takes_media = takes_media
        self.holds = holds
        #: The last part stands for all that follows.
        self.open_end = self.path[-1].endswith("*}")
        #: Where its variable parts are.
        self.places = tuple(
            place for place, part in enumerate(self.path) if part.startswith("{")
        )
        self.headers = (*headers, IF_NONE_MATCH) if tagged else headers
        self.errors = errors
        self.tagged = tagged

    def leads_to(self, path: tuple[str, ...]) -> bool:
        if self.open_end:
            path = self._joined(path)
        return len(path) == len(self.path) and all(
            want == part or want.startswith("{")
            for want, part in zip(self.path, path, strict=True)
        )

    def parts(self, request: Request) -> tuple[str, ...]:
        path = self._joined(request.path) if self.open_end else request.path
        return tuple(path[place] for place in self.places)

    def _joined(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """The path with all that the last part stands for as one."""
        last = len(self.path) - 1
        return (*path[:last], "/".join(path[last:])) if path[last:] else path
