"""A request that goes no further than its head: it breaks a rule of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.gateway.messages import RETRY_AFTER, error_response

if TYPE_CHECKING:
    from forge_actors.edges.gateway.messages import Response

CODES = {
    400: "BAD_REQUEST",
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    408: "TIMEOUT",
    413: "TOO_LARGE",
    429: "TOO_MANY_REQUESTS",
    431: "TOO_LARGE",
    501: "NOT_IMPLEMENTED",
    503: "BUSY",
}


class Refusal(Exception):
    """The client broke a rule of the protocol or of ours; answer, then close."""

    def __init__(
        self, status: int, message: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self._headers = headers or {}

    def response(self) -> Response:
        headers = dict(self._headers)
        if self.status in (429, 503):
            headers.setdefault("retry-after", str(RETRY_AFTER))
        return error_response(
            self.status, CODES[self.status], str(self), headers=headers
        )
