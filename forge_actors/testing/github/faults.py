"""What goes wrong on a GitHub for tests, and what happens between two requests."""

from __future__ import annotations

import json
import re
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forge_actors.testing.github.routes import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    import trio

    from forge_actors.testing.github.routes import Request

#: Requests that are remembered.
MAX_LOG = 10_000


@dataclass
class Fault:
    """Of the requests whose path this matches, from the `nth` on so many go wrong."""

    path: str
    nth: int = 1
    times: int = 1
    #: Answered instead; without a status the true answer is what is damaged.
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    #: Sent as it is if it is text or bytes, else as JSON.
    body: Any = None
    #: No answer; or only so many bytes of it; or none until this is set.
    hang_up: bool = False
    cut_after: int | None = None
    gate: trio.Event | None = None
    met: int = 0

    def meets(self, path: str) -> bool:
        if not re.search(self.path, path):
            return False
        self.met += 1
        return self.nth <= self.met < self.nth + self.times

    def change(self, response: Response) -> Response:
        headers = {**response.headers, **self.headers}
        if self.status is None and self.body is None:
            return Response(response.status, response.body, headers)
        headers.pop("etag", None)
        body = self.body
        if body is None:
            body = b"" if self.status == 304 else response.body
        elif not isinstance(body, bytes):
            body = (body if isinstance(body, str) else json.dumps(body)).encode()
        return Response(self.status or response.status, body, headers)


@dataclass
class Hook:
    """After the `nth` request whose path this matches, `then` happens, once."""

    path: str
    then: Callable[[], object]
    nth: int = 1
    met: int = 0

    def look(self, path: str) -> None:
        if re.search(self.path, path):
            self.met += 1
            if self.met == self.nth:
                self.then()


@dataclass
class Logged:
    """A request that came. What the token was is not told."""

    method: str
    path: str
    query: dict[str, str]
    status: int
    headers: dict[str, str]


class Troubles:
    """The faults and hooks of a server, and the requests that it had."""

    def __init__(self) -> None:
        #: Requests that are being answered.
        self.under_way = 0
        self.faults: list[Fault] = []
        self.hooks: list[Hook] = []
        self.log: deque[Logged] = deque(maxlen=MAX_LOG)

    def fault(self, path: str, **more: Any) -> Fault:
        made = Fault(path, **more)
        self.faults.append(made)
        return made

    def after(self, path: str, then: Callable[[], object], nth: int = 1) -> None:
        self.hooks.append(Hook(path, then, nth))

    def met(self, path: str) -> Fault | None:
        """The first fault that a request meets; all that look at it count it."""
        found = [fault for fault in self.faults if fault.meets(path)]
        return found[0] if found else None

    def came(self, request: Request, status: int) -> None:
        """Write it down, and have happen what comes after it."""
        headers = dict(request.headers)
        if "authorization" in headers:
            headers["authorization"] = "***"
        logged = Logged(request.method, request.path, request.query, status, headers)
        self.log.append(logged)
        for hook in self.hooks:
            hook.look(request.path)

    @property
    def paths(self) -> list[str]:
        return [each.path for each in self.log]

    @property
    def statuses(self) -> list[int]:
        return [each.status for each in self.log]
