"""Scopes: where a pause holds. `all`, `repo:ID` or `provider:NAME`.

A drain is a pause of everything, of a scope of its own: it is not saved and ends with
the runtime, at whose end it aims.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

EVERYTHING = "all"
DRAIN = "drain"
_REPOSITORY = "repo:"
PROVIDER = "provider:"


class Pause(Struct, frozen=True):
    """Nothing new starts in `scope`; with `jobs` what runs there is suspended too."""

    scope: str
    #: Seconds of the wall clock.
    since: float
    jobs: bool = False

    def covers(self, tokens: Iterable[str]) -> bool:
        """Whether it holds for a job with these tokens, if for its repository at all.

        The token of a provider is called as the scope of its pause.
        """
        return not self.scope.startswith(PROVIDER) or self.scope in tokens


def repository_scope(repo: str) -> str:
    return f"{_REPOSITORY}{repo}"


def repository_of(scope: str) -> str | None:
    """The repository that a scope names, or None if it is of another kind."""
    return scope.removeprefix(_REPOSITORY) if scope.startswith(_REPOSITORY) else None


def provider_of(scope: str) -> str | None:
    """The provider that a scope names, or None if it is of another kind."""
    return scope.removeprefix(PROVIDER) if scope.startswith(PROVIDER) else None


def provider_in(tokens: Iterable[str]) -> str | None:
    """The provider whose token is among these."""
    return next((name for token in tokens if (name := provider_of(token))), None)


def describe(scope: str) -> str:
    """What a pause of this scope means for a job there, and what ends it."""
    provider = provider_of(scope)
    if provider is not None:
        return (
            f"provider {provider} is paused; forge-actors resume --provider {provider}"
            " ends that"
        )
    if repository_of(scope) is not None:
        return "its repository is paused; forge-actors resume --repo NAME ends that"
    if scope == DRAIN:
        return "the service is draining; forge-actors drain --cancel ends that"
    return "everything is paused; forge-actors resume --all ends that"
