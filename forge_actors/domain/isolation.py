"""What a job that runs in a worktree of its own claims, and which job may be given one.

A worktree is nobody else's, so there is nothing to wait for in a checkout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.capacity import provider_token
from forge_actors.domain.claims import CHECKOUT_FAMILIES, Claim, strongest
from forge_actors.domain.jobs import AGENT_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.jobs import Job, JobSpec
    from forge_actors.domain.worktrees import Isolation

#: The provider whose programs work in no worktree.
_BOUND = provider_token("github-copilot")


def is_of_checkout(claim: Claim) -> bool:
    """Whether it is what a worktree has of its own. An exclusive one is more: a wish to
    be alone in the repository."""
    families = CHECKOUT_FAMILIES | {"repo-content"}
    return claim.family in families and claim.mode != "exclusive"


def own_worktree(job_id: str) -> Claim:
    return Claim("write", "worktree", job_id)


def own_session(session: str) -> Claim:
    """That of a job that goes on with a session: two would mix what they say in it."""
    return Claim("write", "session", session)


def isolated(claims: Iterable[Claim], job_id: str) -> tuple[Claim, ...]:
    """These claims for a job in its worktree: that in place of a checkout."""
    others = (claim for claim in claims if not is_of_checkout(claim))
    return strongest([own_worktree(job_id), *others])


def inherited(claims: Iterable[Claim], old: str, new: str) -> tuple[Claim, ...]:
    """The claims of a job made anew from another one: not the worktree of that one."""
    mine = own_worktree(old)
    return strongest(own_worktree(new) if claim == mine else claim for claim in claims)


def checkout_claims(spec: JobSpec) -> tuple[Claim, ...] | None:
    """What a job claimed before it was isolated only to wait for nobody."""
    return None if spec.isolation is None else spec.isolation.claims


def with_isolation(spec: JobSpec, isolation: Isolation | None) -> JobSpec:
    """The same with this isolation; without one it runs in its checkout, for good."""
    return structs.replace(spec, isolation=isolation, in_checkout=isolation is None)


def may_be_isolated(job: Job, spec: JobSpec) -> bool:
    """Whether a job may be given a worktree though nobody asked for one."""
    return (
        job.kind in AGENT_KINDS
        and spec.isolation is None
        and not spec.in_checkout
        and not (spec.verify is not None and spec.verify.begun)
        and _BOUND not in job.tokens
    )
