"""The section `[github]`: how GitHub is reached, and with which tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, field

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.github.issues import ANSWER_SECONDS
from forge_actors.domain.github.places import checked_base, host_name
from forge_actors.runtime.secrets import check_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.settings import Value

#: A variable that says where the interface is, as jobs of GitHub's own have it.
API_VARIABLE = "GITHUB_API_URL"
#: Seconds: how short and how long one answer may take.
LEAST, MOST = 1.0, 120.0
MAX_SERVERS = 16


class GitHubSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Where GitHub is, and who asks."""

    #: The address of the interface of every server, such as
    #: https://ghe.example/api/v3; without it that of the server of a repository.
    api: str | None = None
    #: That one answer may take.
    timeout: str | float = f"{ANSWER_SECONDS:g}s"
    #: Issues of one watch that get a job at one look; the rest at the next.
    issues_at_once: Annotated[int, Meta(ge=1, le=100)] = 50
    #: By server: the name of the secret of this home that is its token.
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """
        Raises:
            InvalidInput: naming the field.
        """
        seconds = parse_duration(self.timeout, field="github.timeout")
        if not LEAST <= seconds <= MOST:
            raise InvalidInput(
                "github.timeout", f"must be from {LEAST:g} s to {MOST:g} s"
            )
        return seconds

    def check(self) -> None:
        """Check what the types do not tell.

        Raises:
            InvalidInput: naming the field.
        """
        _ = self.seconds
        if self.api is not None:
            checked_base(self.api, field="github.api")
        if len(self.tokens) > MAX_SERVERS:
            raise InvalidInput("github.tokens", f"has more than {MAX_SERVERS} servers")
        for host, secret in self.tokens.items():
            if host != host_name(host) or "/" in host:
                name = f"{host[:60]!r} is no name of a server such as github.com"
                raise InvalidInput("github.tokens", name)
            check_name(secret, field=f"github.tokens.{host}")

    def base(self, environ: Mapping[str, str]) -> str | None:
        """Where every server is asked, if somebody says so.

        Raises:
            InvalidInput: the variable says what cannot be.
        """
        if self.api is not None:
            return checked_base(self.api, field="github.api")
        if said := environ.get(API_VARIABLE):
            return checked_base(said, field=API_VARIABLE)
        return None

    def values(self) -> dict[str, Value]:
        """What is shown of it."""
        return {
            "github.api": self.api,
            "github.timeout": self.timeout,
            "github.issues_at_once": self.issues_at_once,
            **{f"github.tokens.{host}": name for host, name in self.tokens.items()},
        }
