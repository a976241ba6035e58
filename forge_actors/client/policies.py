"""The part of the client that is about the policy."""

from __future__ import annotations

from typing import Any

from forge_actors.client.worktrees import WorktreeCalls
from forge_actors.domain.policies import PolicyView
from forge_actors.domain.requests import convert


class PolicyCalls(WorktreeCalls):
    """Which work is let in and started."""

    async def policy(self) -> PolicyView:
        return convert(await self._call("GET", "policy"), PolicyView)

    async def set_policy(self, /, mode: str, **policy: Any) -> PolicyView:
        """Have this one in force; what it has besides is as in `PolicyRequest`."""
        body = {"mode": mode, **policy}
        return convert(await self._call("POST", "policy", body=body), PolicyView)

    async def narrow_policy(self, /, work: str, **policy: Any) -> PolicyView:
        """From convergence to the jobs of one work."""
        body = {"work": work, **policy}
        answer = await self._call("POST", "policy", "narrow", body=body)
        return convert(answer, PolicyView)

    async def end_policy(self) -> PolicyView:
        """Anything is let in and started again."""
        return convert(await self._call("DELETE", "policy"), PolicyView)
