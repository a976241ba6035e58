"""What the disk of the simulated machine holds of a store."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from forge_actors.domain.changes import JobAdded, JobsForgotten
from forge_actors.testing.store import Rows

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change, JobDetails


class SimulatedRows(Rows):
    """What a store holds, with what admission asks of jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.details: dict[str, JobDetails] = {}

    def apply(self, change: Change) -> None:
        if type(change) is JobAdded:
            self.details[change.job.id] = change.details
        elif type(change) is JobsForgotten:
            for gone in change.jobs:
                del self.details[gone.job]
        super().apply(change)

    def copy(self) -> SimulatedRows:
        made = SimulatedRows()
        made.jobs = {name: copy.copy(job) for name, job in self.jobs.items()}
        made.specs = self.specs.copy()
        made.details = self.details.copy()
        made.repositories = self.repositories.copy()
        made.pauses = self.pauses.copy()
        made.accounts = self.accounts.copy()
        made.policy = self.policy
        made.marks = self.marks.copy()
        made.hooks = self.hooks.copy()
        made.refused_effects = self.refused_effects.copy()
        made.children = self.children.copy()
        made.quarantined = self.quarantined.copy()
        made.poisoned = self.poisoned.copy()
        made.worktrees = self.worktrees.copy()
        made.owner, made.looks = self.owner, self.looks.copy()
        made.schedules = self.schedules.copy()
        made.workflows = self.workflows.copy()
        made.workflow_steps = self.workflow_steps.copy()
        made.workflow_requests = self.workflow_requests.copy()
        made.controllers = self.controllers.copy()
        made.wakes = self.wakes.copy()
        made.epics = self.epics.copy()
        made.occurrences = self.occurrences.copy()
        made.trusted = self.trusted.copy()
        self.copy_kept(made)
        return made

    def __deepcopy__(self, memo: object) -> SimulatedRows:
        """Only jobs are changed in place."""
        return self.copy()
