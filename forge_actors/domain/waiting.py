"""Why a job waits, as data and as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

from forge_actors.domain.capacity import ACTIVE_REPOSITORIES, WORKERS

if TYPE_CHECKING:
    from forge_actors.domain.capacity import Lack
    from forge_actors.domain.claims import Family
    from forge_actors.domain.jobs import State

WaitingKind = Literal[
    "dependency",
    "claim",
    "token",
    "pause",
    "pressure",
    "limit",
    "approval",
    "agent",
    "retry",
    "reservation",
    "disabled",
    "policy",
]

WAITING_KINDS: tuple[WaitingKind, ...] = get_args(WaitingKind)

_STATE_BY_FAMILY: dict[Family, State] = {
    "workspace": "waiting_for_workspace",
    "path": "waiting_for_workspace",
    "repo-content": "waiting_for_workspace",
    "heavy-check": "waiting_for_heavy_check",
    "integration": "waiting_for_integration",
    "git-ref": "waiting_for_integration",
    "git-refs": "waiting_for_integration",
    "release": "waiting_for_release_barrier",
}

_NOUNS = {
    WORKERS: "workers",
    "heavy_checks": "heavy checks",
    "agents": "agents",
    ACTIVE_REPOSITORIES: "active repositories",
}


def state_for_family(family: Family) -> State:
    """The waiting state of a job whose claim of this family is held by another."""
    return _STATE_BY_FAMILY.get(family, "queued")


class Waiting(Struct, frozen=True, omit_defaults=True):
    """What a job waits for. `holders` are job ids; `position` 1 is the front."""

    kind: WaitingKind
    since: float
    detail: str
    until: float | None = None
    holders: tuple[str, ...] = ()
    position: int | None = None
    #: The claim or the token kind that is lacking.
    resource: str | None = None
    used: int | None = None
    limit: int | None = None
    #: What else is to be told of it, to be said behind the rest.
    note: str = ""


def noun(token: str) -> str:
    """How a person calls a token kind."""
    if token.startswith("provider:"):
        return f"{token.partition(':')[2]} slots"
    return _NOUNS.get(token, token)


def for_gone(token: str, since: float) -> Waiting:
    """What a job waits for that needs a token of a kind that is no more, and the cure.

    Only a provider can go: the other kinds always have a limit.
    """
    name = token.partition(":")[2]
    detail = (
        f"the settings no longer name its provider {name!r}; put [providers.{name}]"
        " back and run forge-actors settings reload, or cancel the job"
    )
    return Waiting("policy", since, detail, resource=token)


def for_person(job: str, since: float, *, asks: bool) -> Waiting:
    """What a job waits for that a person has to see to: its agent asks something, or
    nobody has allowed what it would do."""
    detail = f"its agent asks something; forge-actors answer {job} answers"
    if not asks:
        detail = (
            "nobody has allowed what it would do to the outside;"
            f" forge-actors approve {job} does, deny {job} ends it"
        )
    return Waiting("approval", since, detail)


def describe_lack(lack: Lack) -> str:
    """One lacking token as a clause: which, n of m in use."""
    return f"{lack.used} of {lack.limit} {noun(lack.token)} are in use"
