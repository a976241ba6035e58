"""The part of the fake `Control` that is about the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import ForgeError
from forge_actors.domain.policies import (
    Policy,
    PolicyView,
    changed,
    check_request,
    describe,
)

if TYPE_CHECKING:
    from forge_actors.domain.policies import PolicyRequest

#: When every policy here has begun.
SINCE = "2026-01-02T03:04:05.000Z"


class FakePolicies:
    """Holds one; it ends when the test says so."""

    def __init__(self) -> None:
        self.policy_now = Policy()
        self.policy_until: str | None = None

    async def policy(self) -> PolicyView:
        policy = self.policy_now
        return PolicyView(
            policy.mode,
            policy.work,
            policy.reason,
            SINCE if policy.revision else None,
            self.policy_until,
            policy.revision,
            "" if policy.mode == "normal" else describe(policy),
        )

    async def set_policy(
        self, request: PolicyRequest, *, narrows: bool = False
    ) -> PolicyView:
        check_request(request)
        wanted = Policy(request.mode, request.work, request.reason)
        found = changed(
            self.policy_now, wanted, 0.0, revision=request.revision, narrows=narrows
        )
        if isinstance(found, ForgeError):
            raise found
        self.policy_now, self.policy_until = found, request.until
        return await self.policy()
