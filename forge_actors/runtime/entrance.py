"""The entrance: the socket of a service from when it has its home to when it ends.

Until the start is through, a client that asks is told how far it is, and everything
else is held until it can be answered, so that nobody has to come again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import trio

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput, Unavailable
from forge_actors.edges.gateway.door import Door
from forge_actors.edges.gateway.messages import (
    Limits,
    error_response,
    json_response,
)
from forge_actors.edges.gateway.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors.pulse import Pulse
    from forge_actors.edges.gateway.front import Front
    from forge_actors.edges.gateway.messages import Live, Request, Response, Stream
    from forge_actors.runtime.readiness import Board


class Entrance:
    """Opened once, by `open`; what it leads to is named later, by `lead_to`."""

    def __init__(
        self,
        place: Callable[[], str],
        board: Board,
        status: Callable[[], dict[str, object]],
        request_stop: Callable[[], None],
        pulse: Pulse,
    ) -> None:
        self._place = place
        self._pulse = pulse
        self._board = board
        self._status = status
        self._request_stop = request_stop
        self._door: Door | None = None
        self._front: Front | None = None
        #: Set when it is known whether there will be something to lead to.
        self._decided = trio.Event()
        self._server: Server | None = None
        self.limits = Limits()
        self._scope = trio.CancelScope()
        self._ended = trio.Event()

    @property
    def connections(self) -> int:
        """How many clients there are."""
        return 0 if self._server is None else self._server.connections

    @property
    def path(self) -> str:
        """Where clients find it."""
        assert self._door is not None, "it is open"
        return self._door.path

    async def open(self, nursery: trio.Nursery, limits: Limits) -> None:
        """Answer clients from now on, by tasks of this nursery.

        Raises:
            ForgeError, OSError: the socket cannot be made.
        """
        if self._door is not None:
            return
        self._door, self.limits = Door(self._place), limits
        self._server = Server(self._answer, holds=self._holds, limits=limits)
        await nursery.start(self._serve, self._server, self._door)
        nursery.start_soon(self._door.keep)

    def check(self) -> None:
        """Look whether the socket is still there."""
        if self._door is not None:
            self._door.check()

    def lead_to(self, front: Front) -> None:
        """The start is through, as far as clients are concerned."""
        self._front = front
        self._decided.set()

    def refuse(self) -> None:
        """Take nothing new; what is held until the start is through is refused."""
        self._decided.set()
        if self._server is not None:
            self._server.stop()

    async def end(self) -> None:
        """Take nothing new; return when what is in hand was answered or cut."""
        self.refuse()
        if self._server is not None:
            await self._ended.wait()

    async def cut(self) -> None:
        """End every connection now; nothing is left of it when this returns."""
        self._scope.cancel()
        with trio.CancelScope(shield=True):
            await self.end()

    async def _serve(
        self, server: Server, door: Door, *, task_status: trio.TaskStatus[None]
    ) -> None:
        try:
            with self._scope, self._board.guarding("MCP_TRANSPORT_FAILED", "endToEnd"):
                await server.serve([door], task_status=task_status)
        finally:
            door.remove()
            self._ended.set()

    def _holds(self, request: Request) -> bool:
        if self._front is not None:
            return self._front.holds(request)
        return not self._known(request)

    def _known(self, request: Request) -> bool:
        """Whether it is answered at once while the service starts."""
        asked = request.method, request.path
        if asked == ("GET", ("v1", "status")):
            return "wait=" not in request.query
        return asked == ("POST", ("v1", "stop"))

    async def _answer(self, request: Request) -> Response | Stream | Live:
        self._pulse.wake()  # it may be what blocks everybody
        if self._front is None:
            await trio.lowlevel.checkpoint()
            if self._known(request):
                return self._while_starting(request)
            if await self._waited_in_vain(request):
                return json_response({**self._status(), "timed_out": True})
            if self._front is None:
                words = "the service ended before it was ready; nothing was done"
                return error_response(Unavailable.http_status, Unavailable.code, words)
        return await self._front(request)

    def _while_starting(self, request: Request) -> Response:
        if request.method == "GET":
            return json_response(self._status())
        self._request_stop()
        answer = {"stopping": True, "running": 0, "jobs": False}
        return json_response(answer, status=202)

    async def _waited_in_vain(self, request: Request) -> bool:
        """Wait until it can be answered; whether its own time ran out first."""
        seconds = None
        if request.method == "GET" and request.path == ("v1", "status"):
            seconds = _timeout(request.query)
        if seconds is None:
            await self._decided.wait()
            return False
        with trio.move_on_after(seconds) as limit:
            await self._decided.wait()
        return limit.cancelled_caught


def _timeout(query: str) -> float | None:
    """The time that a request gives itself; of one that is wrong is told later."""
    given = parse_qs(query).get("timeout")
    try:
        return None if not given else parse_duration(given[-1], field="timeout")
    except InvalidInput:
        return None
