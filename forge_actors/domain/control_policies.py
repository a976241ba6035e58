"""What a caller can ask of a runtime about its policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from forge_actors.domain.policies import PolicyRequest, PolicyView


class PolicyControl(Protocol):
    """The part of `Control` that is about which work is let in and started."""

    async def policy(self) -> PolicyView: ...

    async def set_policy(
        self, request: PolicyRequest, *, narrows: bool = False
    ) -> PolicyView:
        """Have another policy in force; it is durable when this returns.

        With `narrows` what converges becomes exclusive to one work.

        Raises:
            InvalidInput: naming the field. Outdated: it has another revision.
            NotConverging: it is to be narrowed, and does not converge.
        """
