"""What readers see of the effects of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.effects import Effect, allowed, held_back

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.effects import Authority
    from forge_actors.domain.launch import Receipt

#: What no guard of ours can see.
UNSEEN = (
    "only git and gh are watched, as a job finds them; not what it does by other"
    " programs, libraries or a network of its own"
)


class ApprovalView(Struct, frozen=True):
    effects: list[Effect]
    by: str
    how: str
    at: str


class EffectsView(Struct, frozen=True, omit_defaults=True):
    """What a job does to the outside: `declared`, and what of it is allowed."""

    automated: bool
    #: What began it, if no person did.
    began: str | None = None
    declared: list[Effect] = []
    authorised: list[Effect] = []
    approvals: list[ApprovalView] = []
    #: What it waits for a person to allow.
    held_back: list[Effect] = []
    #: Commands of its last attempt that were kept from running.
    refused: list[str] = []
    #: What cannot be seen.
    unseen: str | None = None


def effects_view(
    authority: Authority | None,
    job: str,
    receipt: Receipt | None,
    moment: Callable[[float], str],
) -> EffectsView | None:
    if authority is None:
        return None
    return EffectsView(
        automated=authority.automated,
        began=authority.began or None,
        declared=list(authority.declared),
        authorised=list(authority.authorised),
        approvals=[
            ApprovalView(list(each.effects), each.by, each.how, moment(each.at))
            for each in authority.approvals
            if each.job == job
        ],
        held_back=list(held_back(authority, job)),
        refused=[
            f"{each.command} ({each.effect})"
            for each in (() if receipt is None else receipt.refused)
        ],
        unseen=UNSEEN if allowed(authority, job) is not None else None,
    )


def asks_for(job: str, effects: EffectsView | None) -> str:
    """What a job waits to be allowed, and how; empty if it does not."""
    if effects is None or not effects.held_back:
        return ""
    return (
        f"{' and '.join(effects.held_back)}: {effects.began} began it; forge-actors"
        f" approve {job} does, deny {job} ends it"
    )


def kept_from(effects: EffectsView | None) -> str:
    """What the last attempt was kept from, as a sentence behind another one."""
    if effects is None or not effects.refused:
        return ""
    return f" It was kept from {', '.join(effects.refused)}."
