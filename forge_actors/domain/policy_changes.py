"""The change of a policy, as data."""

from __future__ import annotations

from msgspec import Struct

from forge_actors.domain.events import Event
from forge_actors.domain.policies import Policy


class PolicySet(Struct, frozen=True):
    """This is the policy from now on."""

    policy: Policy
    event: Event


def policy_set(policy: Policy, before: Policy, now: float, reason: str) -> PolicySet:
    """The change to a policy; `reason` is what its event says."""
    data: dict[str, object] = {
        "mode": policy.mode,
        "before": before.mode,
        "revision": policy.revision,
    }
    if policy.work is not None:
        data["work"] = policy.work
    if policy.until is not None:
        data["until"] = policy.until
    if reason:
        data["reason"] = reason
    return PolicySet(policy, Event("policy_changed", now, data=data))
