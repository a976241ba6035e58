"""May this process still write? The reasons why not, in the order that counts.

A process of an earlier start may be late: it was suspended, its folder is shared, its
lock was lost. It carries a claim, what it was told when it took its home; who has the
home now is in the store, which release is the active one in the authority. The first
difference, in the order of `REASONS`, is the answer.

Two reasons that others know cannot happen here and are left out. A claim is made by the
take-over and handed on as a value, never put together from an environment, so it is
never invalid. And a release id names the content of the release, so two artifacts never
have the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

if TYPE_CHECKING:
    from forge_actors.domain.ownership import Owner

#: What a late process must not do.
Action = Literal[
    "consume_queue",
    "renew_lease",
    "release_lease",
    "write_process_terminal",
    "write_workflow_terminal",
    "write_operation_receipt",
    "remote_side_effect",
    "cleanup",
    "update_active_projection",
    "scheduler_write",
    "integrate_worktree",
    "release_mutation",
    "bootstrap_mutation",
    "cancel_process",
]
ACTIONS: tuple[Action, ...] = get_args(Action)

#: Why a process may not write any more.
Reason = Literal[
    "runtime_write_claim_unbound_while_authority_present",
    "controller_home_mismatch",
    "runtime_authority_appeared_after_unmanaged_bind",
    "runtime_owner_missing",
    "runtime_owner_dead",
    "runtime_instance_fenced",
    "runtime_owner_pid_fenced",
    "runtime_release_authority_missing",
    "release_authority_revision_fenced",
    "release_fencing_token_mismatch",
    "release_id_fenced",
    "worker_protocol_fenced",
]
REASONS: tuple[Reason, ...] = get_args(Reason)


class Authority(Struct, frozen=True):
    """Which release is the active one of a home, as it was saved.

    `revision` grows with each activation, which also has a token of its own. Only the
    digest of that is kept: whoever reads it cannot claim to be the release.
    """

    revision: int
    token_digest: str
    release: str
    protocol: int


class Claim(Struct, frozen=True):
    """What a process was told when it took its home.

    `authority` is None if no release had ever been activated there then.
    """

    home: str
    instance: str
    pid: int
    epoch: int
    authority: Authority | None = None


def may_write(
    claim: Claim | None,
    owner: Owner | None,
    authority: Authority | None,
    *,
    home: str,
    owner_alive: bool,
) -> Reason | None:
    """The first reason why the holder of `claim` may not write in `home`; None: it may.

    Where nobody has ever been the owner and no release is active, whoever has taken
    nothing may write, as tests do, and so may the owner of another home.
    """
    if claim is None or claim.home != home:
        if owner is None and authority is None:
            return None
        if claim is None:
            return "runtime_write_claim_unbound_while_authority_present"
        return "controller_home_mismatch"
    bound = claim.authority
    if bound is None and authority is not None:
        return "runtime_authority_appeared_after_unmanaged_bind"
    return _owner_fenced(claim, owner, owner_alive) or _release_fenced(bound, authority)


def _owner_fenced(
    claim: Claim, owner: Owner | None, owner_alive: bool
) -> Reason | None:
    if owner is None:
        return "runtime_owner_missing"
    if not owner_alive:
        return "runtime_owner_dead"
    if (claim.instance, claim.epoch) != (owner.instance, owner.epoch):
        return "runtime_instance_fenced"
    if claim.pid != owner.process.pid:
        return "runtime_owner_pid_fenced"
    return None


def _release_fenced(
    bound: Authority | None, authority: Authority | None
) -> Reason | None:
    if bound is None:
        return None
    if authority is None:
        return "runtime_release_authority_missing"
    if bound.revision != authority.revision:
        return "release_authority_revision_fenced"
    if bound.token_digest != authority.token_digest:
        return "release_fencing_token_mismatch"
    if bound.release != authority.release:
        return "release_id_fenced"
    if bound.protocol != authority.protocol:
        return "worker_protocol_fenced"
    return None
