"""The part of the fake control that is about what jobs changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from forge_actors.domain.errors import Refused
from forge_actors.domain.results import Applied

if TYPE_CHECKING:
    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.results import ApplyMode, DiffForm, JobResult


class FakeResults(ABC):
    """Holds the changes of jobs in memory; a job without any has no worktree."""

    def __init__(self) -> None:
        #: By job.
        self.results: dict[str, JobResult] = {}
        #: By job and form.
        self.diffs: dict[tuple[str, DiffForm], bytes] = {}
        #: Each call of `apply`, in order.
        self.applied: list[tuple[str, ApplyMode, bool]] = []

    @abstractmethod
    async def _begin(self) -> None: ...

    @abstractmethod
    def _find(self, selector: str) -> JobView: ...

    async def result(self, selector: str) -> JobResult | None:
        await self._begin()
        return self.results.get(self._find(selector).id)

    async def diff(self, selector: str, form: DiffForm = "patch") -> bytes:
        await self._begin()
        job = self._find(selector).id
        found = self.diffs.get((job, form))
        if found is None:
            raise Refused(f"job {job} has no worktree of its own")
        return found

    async def apply(
        self, selector: str, mode: ApplyMode = "auto", *, commit_first: bool = False
    ) -> Applied:
        await self._begin()
        job = self._find(selector).id
        if not any(known == job for known, _ in self.diffs):
            raise Refused(f"job {job} has no worktree of its own")
        self.applied.append((job, mode, commit_first))
        return Applied(job, "forge/x", None, "/app", "main", "0" * 40, "fast-forward")
