"""Which EPIC somebody means by a URL."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.github.places import (
    GITHUB,
    MAX_URL,
    is_cloud,
    parse_issue_url,
)
from forge_actors.domain.harmless import clean
from forge_actors.domain.redaction import bounded, redact

if TYPE_CHECKING:
    from collections.abc import Collection

    from forge_actors.domain.github.places import IssueAt

_SHAPE = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+(?::[0-9]{1,5})?)"
    r"/[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+/issues/[1-9][0-9]{0,9}"
)
_PULL = re.compile(r"https?://[^/?#]+/[^/?#]+/[^/?#]+/pull/.*")
EXAMPLE = "https://github.com/octo/demo/issues/7"
MAX_SHOWN = 200


def parse_epic_url(
    url: str, *, hosts: Collection[str] = (), plain: Collection[str] = ()
) -> IssueAt:
    """The issue that a URL such as https://github.com/octo/demo/issues/7 leads to.

    `hosts` are servers besides GitHub's own that somebody has set up; `plain` are
    those of them that are asked without encryption, which only this machine is.

    Raises:
        InvalidInput: it leads to none, or to a server that nobody has set up.
    """
    found = _SHAPE.fullmatch(url) if len(url) <= MAX_URL else None
    if found is None:
        raise InvalidInput("epic", _why_not(url))
    at = parse_issue_url(url, field="epic")
    host = found["host"].lower()
    if host not in _names(at.place.host) and host not in hosts:
        raise InvalidInput(
            "epic",
            f"{host} is no server that is set up: name its token in [github.tokens],"
            " or set GITHUB_API_URL",
        )
    if found["scheme"] == "http" and host not in plain:
        raise InvalidInput("epic", f"{_shown(url)} must begin with https://")
    return at


def _names(host: str) -> tuple[str, ...]:
    """How a server of GitHub itself is written in a URL for people."""
    if host == GITHUB:
        return GITHUB, f"www.{GITHUB}", f"{GITHUB}:443"
    return (host,) if is_cloud(host) else ()


def _why_not(url: str) -> str:
    if _PULL.fullmatch(url):
        return f"{_shown(url)} is a pull request; an EPIC is an issue such as {EXAMPLE}"
    front = url.partition("#")[0].partition("?")[0]
    if front != url and _SHAPE.fullmatch(front):
        return f"leave off what is behind the number: {_shown(front)}"
    return f"{_shown(url)} is no issue such as {EXAMPLE}"


def _shown(url: str) -> str:
    return repr(bounded(redact(clean(url[:MAX_URL])), MAX_SHOWN))
