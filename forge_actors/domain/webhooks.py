"""Webhooks: events that are told to other programs by HTTP, each at least once.

What follows from an answer is decided here. The form is that of Standard Webhooks: an
id that stays the same when it is told again, a moment, and a signature of both and the
body.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Webhooks of one home.
MAX_HOOKS = 16
#: Characters of a URL, and of what is told of a failure.
MAX_URL = 2000
MAX_DETAIL = 200
#: Seconds from one try of a hook that fails to the next: the first, and the most. A
#: receiver may ask for more, up to the last.
FIRST_RETRY = 1.0
LONGEST_RETRY = 300.0
MAX_RETRY_AFTER = 3600.0
#: Before a secret whose bytes are written in base64.
PREFIX = "whsec_"

_NAME = re.compile(r"[a-z0-9._-]{1,64}")
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)"
    r"(:(?P<port>[0-9]{1,5}))?(?P<target>[/?][!-~]*)?"
)
_BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#: What is not an address of this machine by itself would be looked up as a name.
_LOOPBACK = re.compile(rf"localhost|127(\.{_BYTE}){{3}}|\[::1\]", re.IGNORECASE)

#: Why a hook is told nothing any more: it failed for too long, or it says itself that
#: it is gone.
Closing = Literal["suspended", "gone"]


class Target(Struct, frozen=True):
    """Where a URL leads. Its path can be a secret, so it is never shown."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The host as a URL and the header `host` have it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.scheme == "https" else 80
        return host if self.port == usual else f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        return f"{self.scheme}://{self.authority}/…"


def parse_target(url: str, *, field: str) -> Target:
    """Where a URL leads.

    Raises:
        InvalidInput: it is none that may be called.
    """
    match = _URL.fullmatch(url)
    if len(url) > MAX_URL or match is None:
        raise InvalidInput(
            field, "is no URL such as https://host/path, without a user or a fragment"
        )
    if match["scheme"] == "http" and not _LOOPBACK.fullmatch(match["host"]):
        raise InvalidInput(
            field, "has to be https: only this machine may be plain http"
        )
    if "#" in url:
        raise InvalidInput(field, "has a fragment, which is never sent")
    port = int(match["port"] or (443 if match["scheme"] == "https" else 80))
    if not 0 < port < 65536:
        raise InvalidInput(field, "has no port that there is")
    path = match["target"] or "/"
    path = path if path.startswith("/") else f"/{path}"
    return Target(match["scheme"], match["host"].strip("[]"), port, path)


def fingerprint(url: str) -> str:
    """What tells two URLs apart without showing them."""
    return hashlib.sha256(url.encode()).hexdigest()[:8]


def check_hook_name(name: str, *, field: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInput(field, "has 1 to 64 of a-z 0-9 . _ -")


def chosen(
    kinds: Iterable[str], known: Iterable[str], *, field: str
) -> tuple[str, ...]:
    """The kinds that are meant: by name, or all that begin so, with a star behind.

    Raises:
        InvalidInput: one means none.
    """
    names = tuple(known)
    found: dict[str, None] = {}
    for word in kinds:
        begin = word[:-1] if word.endswith("*") else None
        meant = [n for n in names if n == word or (begin and n.startswith(begin))]
        if not meant and word != "*":
            raise InvalidInput(field, f"{word!r} is no kind of event")
        found |= dict.fromkeys(names if word == "*" else meant)
    return tuple(found)


class Delivery(Struct, frozen=True):
    """One thing to be told, and how long that may take."""

    target: Target
    headers: dict[str, str]
    body: bytes
    seconds: float

    def __repr__(self) -> str:
        return f"<delivery to {self.target.shown}>"


class Answered(Struct, frozen=True):
    """What a receiver said."""

    status: int
    #: Seconds after which it wants to be told again.
    retry_after: float | None = None


class NotDelivered(Exception):
    """There was no answer; in words, without anything of the URL but its host."""


class Sender(Protocol):
    """Tells others by HTTP."""

    async def send(self, delivery: Delivery) -> Answered:
        """Tell it once. No redirect is followed, and no more than a bit is read.

        Raises:
            NotDelivered: there was no answer in time.
        """

    async def close(self) -> None:
        """Keep no connection open."""


class HookMark(Struct, frozen=True):
    """How far a hook is, as it is saved."""

    name: str
    #: The number of the last event that it was told, or that was not for it.
    after: int
    #: Which URL that was.
    target: str = ""
    #: Since when it fails, and the last reason.
    failing_since: float | None = None
    detail: str = ""
    closed: Closing | None = None


class HookView(Struct, frozen=True):
    """A hook as readers see it."""

    name: str
    url: str
    kinds: list[str]
    repositories: list[str]
    state: Literal["open", "failing", "suspended", "gone"]
    #: The number of the last event that it was told, and how many came since then.
    after: int
    behind: int
    since: str | None
    detail: str | None


def sign(secret: bytes, message: str, moment: int, body: bytes) -> str:
    """The signature of one delivery, as its header has it."""
    signed = b".".join((message.encode(), str(moment).encode(), body))
    made = hmac.new(key_of(secret), signed, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(made).decode('ascii')}"


def key_of(secret: bytes) -> bytes:
    """The bytes that a stored secret stands for."""
    value = secret.strip()
    if value.startswith(PREFIX.encode()):
        try:
            return base64.b64decode(value[len(PREFIX) :], validate=True)
        except binascii.Error:
            pass
    return value


def refusal(answer: Answered) -> str | None:
    """Why an answer does not mean that it was taken."""
    if 200 <= answer.status < 300:
        return None
    more = ", which is not followed" if 300 <= answer.status < 400 else ""
    return f"it answered {answer.status}{more}"


def is_gone(answer: Answered) -> bool:
    """It wants to be told nothing any more."""
    return answer.status == 410


def delay(tries: int, asked: float | None, chance: float) -> float:
    """Seconds until a hook that failed so often in a row is tried again; `chance` is
    from 0 to 1, so that not all of them come at once."""
    longest = min(LONGEST_RETRY, FIRST_RETRY * 2.0 ** min(tries - 1, 20))
    wait = longest * (0.5 + chance / 2)
    return wait if asked is None else max(wait, min(asked, MAX_RETRY_AFTER))
