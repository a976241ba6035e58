"""Places on GitHub: which server, which repository, and where its interface is."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput

GITHUB = "github.com"
#: The largest number of an issue, and the largest id.
MAX_NUMBER, MAX_ID = 2**31, 2**53
MAX_URL = 2048
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?")
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_SCP = re.compile(r"(?:[A-Za-z0-9._-]{1,64}@)?([A-Za-z0-9.-]{1,253}):(?!//)(.+)")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Place(Struct, frozen=True, order=True):
    """A repository on a server, all in lower case: GitHub takes no notice of case."""

    host: str
    owner: str
    name: str

    @property
    def repo(self) -> str:
        return f"{self.owner}/{self.name}"

    def __str__(self) -> str:
        return self.repo if self.host == GITHUB else f"{self.host}/{self.repo}"


class IssueAt(Struct, frozen=True, order=True):
    """An issue by its number."""

    place: Place
    number: int

    def __str__(self) -> str:
        return f"{self.place}#{self.number}"


def repository_name(text: str) -> tuple[str, str] | None:
    """Owner and name of `OWNER/NAME`, in lower case; None if it is no such thing."""
    owner, slash, name = text.partition("/")
    good = slash and _OWNER.fullmatch(owner) and _NAME.fullmatch(name)
    if not good or name in (".", ".."):
        return None
    return owner.lower(), name.lower()


def parse_place(text: str, *, field: str) -> Place:
    """A repository, written `OWNER/NAME`, `HOST/OWNER/NAME` or as the URL of it.

    Raises:
        InvalidInput: it is none.
    """
    place = remote_place(text) if ":" in text else None
    if place is None:
        host, _, rest = text.partition("/")
        found = repository_name(text)
        if found is None and _HOST.fullmatch(host.lower()):
            found = repository_name(rest)
        else:
            host = GITHUB
        place = None if found is None else Place(host_name(host), *found)
    if place is None:
        raise InvalidInput(field, f"{text[:200]!r} is no repository such as octo/demo")
    return place


def remote_place(url: str) -> Place | None:
    """Where the remote of a repository leads, if that may be a server of GitHub."""
    if len(url) > MAX_URL:
        return None
    scp = _SCP.fullmatch(url)
    if scp is not None:
        host, path = scp[1], scp[2]
    else:
        try:
            parts = urlsplit(url)
            named, port = parts.hostname, parts.port
        except ValueError:
            return None
        if parts.scheme not in ("https", "http", "ssh", "git") or named is None:
            return None
        # A port of ssh says nothing about that of the interface.
        shown = port is not None and parts.scheme == "https" and port != 443
        host, path = f"{named}:{port}" if shown else named, parts.path
    found = repository_name(path.strip("/").removesuffix(".git"))
    host = host_name(host)
    if found is None or not _HOST.fullmatch(host):
        return None
    return Place(host, *found)


def parse_issue_url(url: str, *, field: str = "url") -> IssueAt:
    """The issue that a URL such as https://github.com/octo/demo/issues/7 leads to.

    Raises:
        InvalidInput: it leads to none.
    """
    try:
        parts = urlsplit(url if len(url) <= MAX_URL else "")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    words = parts.path.strip("/").split("/")
    number = words[3] if len(words) == 4 and words[2] == "issues" else ""
    found = repository_name("/".join(words[:2]))
    host = host_name(host if port in (None, 443) else f"{host}:{port}")
    good = parts.scheme in ("https", "http") and _HOST.fullmatch(host)
    digits = number.isascii() and number.isdecimal() and len(number) <= 10
    if not good or found is None or not digits or not 1 <= int(number) <= MAX_NUMBER:
        raise InvalidInput(
            field,
            f"{url[:200]!r} is no issue such as https://github.com/octo/demo/issues/7",
        )
    return IssueAt(Place(host, *found), int(number))


def host_name(host: str) -> str:
    """A server by the one name that it is known by."""
    host = host.lower()
    if host.endswith(".github.com"):
        return GITHUB
    if host.endswith(".ghe.com"):
        return ".".join(host.split(".")[-3:])
    return host


def is_cloud(host: str) -> bool:
    """Whether GitHub itself runs it, so that the tokens of github.com are for it."""
    return host == GITHUB or host.endswith(".ghe.com")


def api_base(host: str) -> str:
    """Where the interface of a server is, without a slash at its end."""
    if is_cloud(host):
        return f"https://api.{host}"
    return f"https://{host}/api/v3"


def checked_base(url: str, *, field: str) -> str:
    """An address of an interface that somebody gave, without a slash at its end.

    Raises:
        InvalidInput: it is none, or others could read along.
    """
    try:
        parts = urlsplit(url if len(url) <= MAX_URL else "")
        host = parts.hostname
        _ = parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    plain = parts.scheme == "http" and host in _LOOPBACK
    extra = parts.query or parts.fragment or parts.username or parts.password
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
    good = parts.scheme == "https" or plain
    # What leads anywhere from it has to be below it.
    if not host or not good or extra or not within(base, f"{base}/x"):
        # It is not repeated: somebody may have written a password into it.
        raise InvalidInput(field, "is no address such as https://ghe.example/api/v3")
    return base


def is_loopback(base: str) -> bool:
    return urlsplit(base).hostname in _LOOPBACK


def within(base: str, url: str) -> bool:
    """Whether a URL leads to the same server, below the same address."""
    try:
        ours, theirs = urlsplit(base), urlsplit(url)
        same = (ours.scheme, ours.hostname, _port(base)) == (
            theirs.scheme,
            theirs.hostname,
            _port(url),
        )
    except ValueError:
        return False
    odd = theirs.username or theirs.password or theirs.fragment
    dots = {".", ".."} & set(theirs.path.split("/"))
    plain = url.isascii() and url.isprintable() and " " not in url
    below = theirs.path.startswith(f"{ours.path}/")
    return same and below and plain and not odd and not dots and len(url) <= MAX_URL


def _port(url: str) -> int:
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)
