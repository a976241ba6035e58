"""The part of the client that is about what jobs changed in their worktrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.client.artifacts import ArtifactCalls
from forge_actors.domain.requests import convert
from forge_actors.domain.results import Applied

if TYPE_CHECKING:
    from forge_actors.domain.results import ApplyMode, DiffForm


class ResultCalls(ArtifactCalls):
    """What a job did: `job` tells it in numbers, these give and apply it."""

    async def diff(self, selector: str, form: DiffForm = "patch") -> bytes:
        """What a job changed, uncommitted files included.

        Of more than `domain.results.MAX_DIFF` bytes it is the first ones, and one more.
        """
        place = ("jobs", selector, "diff")
        async with await self._send("GET", place, query=[("form", form)]) as answer:
            return b"".join([piece async for piece in answer])

    async def apply(
        self, selector: str, mode: ApplyMode = "auto", *, commit_first: bool = False
    ) -> Applied:
        """Bring the branch of a job into its checkout, or change nothing at all.

        With `commit_first` what is not committed in its worktree is committed there.
        """
        body = {"mode": mode, "commit_first": commit_first}
        answer = await self._call("POST", "jobs", selector, "apply", body=body)
        return convert(answer, Applied)
