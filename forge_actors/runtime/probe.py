"""The probe: a client of the service that asks it for its status, as any other would.

Standard library only and in a thread of its own, so that nothing of the service but
its socket has a part in it.
"""

from __future__ import annotations

import http.client
import json
import socket
from typing import TYPE_CHECKING, Any

import trio

from forge_actors.domain.errors import ForgeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

#: Seconds within which a service that works has answered itself.
PROBE_SECONDS = 15.0


class ProbeFailed(ForgeError):
    """The service did not answer itself as it would answer a client."""

    code = "MCP_END_TO_END_FAILED"


async def ask_over_socket(path: str, instance: str) -> None:
    """Ask the service with the socket at `path` for its status.

    Raises:
        ProbeFailed: no answer came, or another one than that of this instance.
    """
    status = await trio.to_thread.run_sync(_ask, path, abandon_on_cancel=True)
    answered = status.get("service")
    found = answered.get("instance") if isinstance(answered, dict) else None
    if found != instance:
        raise ProbeFailed(
            f"whoever answers on {path} is {found}, and this service is {instance}"
        )


async def within_time(probe: Callable[[], Awaitable[None]]) -> None:
    """Run a probe.

    Raises:
        ProbeFailed: it did, or took too long.
    """
    with trio.move_on_after(PROBE_SECONDS) as limit:
        await probe()
    if limit.cancelled_caught:
        raise ProbeFailed(
            f"the service did not answer itself within {PROBE_SECONDS:g} s"
        )


class _Connection(http.client.HTTPConnection):
    """A connection to a socket in the file system."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PROBE_SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PROBE_SECONDS)
        self.sock.connect(self._path)


def _ask(path: str) -> dict[str, Any]:
    connection = _Connection(path)
    try:
        connection.request("GET", "/v1/status", headers={"Connection": "close"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise ProbeFailed(f"the service answers itself with status {answer.status}")
        status = json.loads(body)
    except (OSError, http.client.HTTPException, ValueError, RecursionError) as error:
        raise ProbeFailed(f"the service does not answer on {path}: {error}") from None
    finally:
        connection.close()
    return status if isinstance(status, dict) else {}
