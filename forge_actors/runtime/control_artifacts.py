"""What can be asked of the artifacts of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import MsgspecError, structs

from forge_actors.domain.artifacts import Artifacts
from forge_actors.domain.errors import InvalidInput, NotFound
from forge_actors.domain.jobs import RESERVED, JobView
from forge_actors.edges.sqlite.rows import spec_from
from forge_actors.runtime.control_jobs import JobControl
from forge_actors.runtime.kept_artifacts import KeptFile, kept
from forge_actors.runtime.views import receipt_of

if TYPE_CHECKING:
    from typing import Any


class ArtifactControl(JobControl):
    """The part of the port `Control` that is about artifacts."""

    async def job(self, selector: str) -> JobView:
        view = await super().job(selector)
        row = self._row(view.id)
        if view.state in RESERVED or not view.attempt or not _wanted(row):
            return view
        return structs.replace(view, artifacts=self._kept(row, view.attempt))

    async def artifacts(
        self, selector: str, *, attempt: int | None = None
    ) -> Artifacts:
        row = self._row(self._store.match(selector))
        return self._kept(row, self._attempt_of(row, attempt))

    async def artifact(
        self, selector: str, path: str, *, attempt: int | None = None
    ) -> KeptFile:
        row = self._row(self._store.match(selector))
        number = self._attempt_of(row, attempt)
        return KeptFile(str(self._home), row[0], number, path)

    def _attempt_of(self, row: tuple[Any, ...], attempt: int | None) -> int:
        last = int(row[7])
        if attempt is not None and not 1 <= attempt <= last:
            problem = f"{attempt} is not among the {last} there were"
            raise InvalidInput("attempt", problem)
        if last == 0:
            raise NotFound(f"job {row[0]} has not begun, and has no artifacts")
        if not _wanted(row):
            raise NotFound(f"job {row[0]} was submitted without --artifact")
        return attempt or last

    def _kept(self, row: tuple[Any, ...], attempt: int) -> Artifacts:
        receipt = receipt_of(row) if attempt == row[7] else None
        told = None if receipt is None else receipt.artifacts
        if row[1] in RESERVED and attempt == row[7]:
            return Artifacts(attempt, "pending")
        return kept(str(self._home), row[0], attempt, told)


def _wanted(row: tuple[Any, ...]) -> tuple[str, ...]:
    """The patterns of a job; none of one whose record cannot be read."""
    try:
        return spec_from((row[5],)).artifacts
    except (MsgspecError, RecursionError):
        return ()
