"""What a worker has to find before it may begin: its own binding, claim and state.

Whatever is not as it has to be is a refusal that names it; nothing was written then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.epic.records import (
    Binding,
    Claim,
    EngineState,
    decode,
    digest_of,
)
from forge_actors.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence


class NotAdmitted(Refused):
    """What this worker was started with is not what its issue has on record."""

    code = "NOT_ADMITTED"


class Admitted(Struct, frozen=True):
    """What a worker was started with."""

    epic: int
    issue: int
    claim_id: str
    generation: int
    invocation_id: str
    accept_config_change: bool = False


def check_claim(
    given: Admitted,
    binding: Binding | None,
    claims: Sequence[Claim],
) -> Claim:
    """The claim that this worker works under; `claims` are all of the issue.

    Raises:
        NotAdmitted: naming what is otherwise.
    """
    if binding is None:
        raise NotAdmitted(f"issue #{given.issue} is bound to no EPIC")
    found = [claim for claim in claims if claim.generation == given.generation]
    if len(found) != 1:
        raise NotAdmitted(f"there is no claim {given.generation}")
    [claim] = found
    pairs = {
        "the id of the claim": (claim.claim_id, given.claim_id),
        "the invocation of the claim": (claim.invocation_id, given.invocation_id),
        "the issue of the claim": (claim.run_key.issue_number, given.issue),
        "the EPIC of the claim": (claim.epic.number, given.epic),
        "the issue of the binding": (binding.run_key.issue_number, given.issue),
        "the EPIC of the binding": (binding.epic.number, given.epic),
        "the repository": (claim.run_key, binding.run_key),
        "the id of the issue": (claim.issue_id, binding.issue_id),
        "the id of the EPIC": (claim.epic, binding.epic),
    }
    for what, (is_so, has_to_be) in pairs.items():
        if is_so != has_to_be:
            raise NotAdmitted(f"{what} is {is_so}, and not {has_to_be}")
    if claim.closed is not None:
        raise NotAdmitted(f"claim {claim.generation} is closed")
    highest = max(each.generation for each in claims)
    if highest != claim.generation:
        raise NotAdmitted(f"claim {claim.generation} is not the last: {highest} is")
    return claim


def check_state(
    claim: Claim, saved: bytes | None, digest: str, *, accept: bool
) -> EngineState | None:
    """The state to go on from; None where the work begins.

    `digest` is that of the settings as they are now, and may be another one only where
    a person accepts that.

    Raises:
        NotAdmitted: it is not the state that the claim is about.
        StateError: it cannot be read.
    """
    if claim.kind == "start":
        if saved is not None:
            raise NotAdmitted("the work is to begin, and there is a state of it")
        return None
    if saved is None:
        raise NotAdmitted("the work is to go on, and there is no state of it")
    if digest_of(saved) != claim.state_ref.digest:
        raise NotAdmitted("the state is not the one that the claim goes on from")
    state = decode(EngineState, saved)
    if state.run_key != claim.run_key:
        raise NotAdmitted("the state is of another issue")
    if state.config_digest != digest and not accept:
        raise NotAdmitted(
            "the settings are not those that the work began with; begin it with"
            " --accept-config-change if it shall go on with them"
        )
    return state
