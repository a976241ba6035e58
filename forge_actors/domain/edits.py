"""Edits: what can be changed of a job while it waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, Struct, UnsetType, structs

from forge_actors.domain.claims import Claim
from forge_actors.domain.priority import PRIORITIES

if TYPE_CHECKING:
    from forge_actors.domain.jobs import Budgets, Job


class Edit(Struct, frozen=True, kw_only=True):
    """The new values, checked; what is UNSET stays. A budget of None is no limit."""

    priority: int | UnsetType = UNSET
    claims: tuple[Claim, ...] | UnsetType = UNSET
    labels: tuple[str, ...] | UnsetType = UNSET
    timeout: float | UnsetType | None = UNSET
    queue_timeout: float | UnsetType | None = UNSET
    admission_timeout: float | UnsetType | None = UNSET
    idle_timeout: float | UnsetType | None = UNSET

    def apply(self, job: Job) -> None:
        """Change what the ledger holds of the job."""
        if self.priority is not UNSET:
            job.priority = self.priority
        if self.claims is not UNSET:
            job.claims = self.claims
        if self.queue_timeout is not UNSET:
            job.queue_budget = self.queue_timeout
        if self.admission_timeout is not UNSET:
            job.admission_budget = self.admission_timeout

    def budgets(self, old: Budgets) -> Budgets:
        """The time budgets of the job afterwards."""
        wanted = {
            "execution": self.timeout,
            "queue": self.queue_timeout,
            "admission": self.admission_timeout,
            "idle": self.idle_timeout,
        }
        given = {name: value for name, value in wanted.items() if value is not UNSET}
        return structs.replace(old, **given)

    def shown(self) -> dict[str, object]:
        """The given fields as a submission names them, for events."""
        table = {name: getattr(self, name) for name in self.__struct_fields__}
        shown = {name: value for name, value in table.items() if value is not UNSET}
        if self.priority is not UNSET:
            shown["priority"] = PRIORITIES[self.priority]
        return shown
