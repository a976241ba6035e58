"""What a service answers with, as the exceptions it was. Standard library only."""

from __future__ import annotations

import json

from forge_actors.client.home import (
    owner,
    resolve_home,
    serving_pid,
    socket_path,
)
from forge_actors.domain.errors import (
    ForgeError,
    InvalidInput,
    LauncherDown,
    NotFound,
    Refused,
    StoreFailed,
    Unavailable,
)

_KNOWN = {
    kind.code: kind
    for kind in (NotFound, Refused, Unavailable, StoreFailed, LauncherDown)
}
_BY_STATUS: dict[int, type[ForgeError]] = {
    401: Refused,
    403: Refused,
    404: NotFound,
    409: Refused,
    412: Refused,
    429: Unavailable,
    503: Unavailable,
}


class NoService(Unavailable):
    """No service runs on this home. (Not: it went away, or has no time.)

    `reason` is the message without its advice.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(f"{reason}{advice}")
        self.reason = reason


class SocketGone(Unavailable):
    """A service runs on this home, and nobody can reach it."""


class ServiceError(ForgeError):
    """The service answered with an error that this client has no name for."""


class InputRefused(InvalidInput):
    """The service found the input not valid; the message is the service's."""

    def __init__(self, message: str, field: str, allowed: tuple[str, ...]) -> None:
        problem = message.removeprefix(f"{field}: ")
        super().__init__(field, problem)
        self.allowed = allowed
        self.args = ServiceError(message).args


def from_answer(status: int, body: bytes) -> ForgeError:
    """The exception that an answer with an error status stands for."""
    try:
        error = json.loads(body)
        code, message = str(error["code"]), str(error["detail"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ServiceError(f"the service answered with status {status}")
    if code == InvalidInput.code:
        allowed = error.get("allowed")
        allowed = allowed if isinstance(allowed, list) else ()
        return InputRefused(
            message,
            str(error.get("field", "input")),
            tuple(str(word) for word in allowed),
        )
    kind = _KNOWN.get(code) or _BY_STATUS.get(status, ServiceError)
    found = kind(message)
    # On the instance: the word is the service's, which may know more than we do.
    found.code = code
    return found


def no_service(home: str) -> NoService:
    pid = owner(home)
    if pid is not None:
        return NoService(
            f"process {pid} has {home} and answers nobody:"
            " it starts, it ends, or it is a run of its own"
        )
    where = "" if home == resolve_home(None) else f" --home {home}"
    return NoService(
        f"no service runs on {home}", f"; start one with: forge-actors serve{where}"
    )


def not_reached(home: str) -> Unavailable:
    """Why nobody listens on the socket of this home."""
    pid = serving_pid(home)
    if pid is None:
        return no_service(home)
    return SocketGone(
        f"the service on {home} (pid {pid}) runs, but its socket"
        f" {socket_path(home)} is gone; kill -HUP {pid} has it make another one"
    )


def broke_off(home: str, *, unheard: bool = False) -> Unavailable:
    """An answer did not come whole; `unheard`: not a byte did, of one to a GET.

    A service that is killed while it starts a program leaves its socket open a moment
    longer: who only asked there has met nobody.
    """
    if unheard and serving_pid(home) is None:
        return no_service(home)
    return Unavailable(
        f"the service on {home} went away before it answered; "
        "what was asked may or may not have been done"
    )
