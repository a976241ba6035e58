"""What may be in use at once and what is, as a program that runs a runtime sees it."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

#: `paused`: by a person. `closed`: its account takes nothing for now. `removed`: the
#: settings name it no more.
ProviderState: TypeAlias = Literal["open", "paused", "closed", "removed"]


class TokenView(Struct, frozen=True):
    """The tokens of one kind: how many there are, and the jobs that hold the rest."""

    used: int
    limit: int
    jobs: tuple[str, ...] = ()


class ProviderView(Struct, frozen=True):
    """The tokens of one provider, and whether it takes jobs."""

    used: int
    limit: int
    state: ProviderState
    jobs: tuple[str, ...] = ()


class CapacityView(Struct, frozen=True):
    """All of them. `pressure` says why only a few jobs start, if that is so."""

    #: By kind, such as `workers` and `agents`.
    tokens: dict[str, TokenView]
    active_repositories: TokenView
    providers: dict[str, ProviderView]
    pressure: str | None = None
