"""Selection: which jobs a caller means, by their ids or by what they are.

A job has one repository, state, kind and origin, and may be of one work: of these, any
that is named will do.
It may have many labels: it must have all that are named. Different fields narrow.
"""

from __future__ import annotations

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.jobs import Kind, State

#: Jobs that one selection may mean. Whoever means more has to narrow it.
MAX_SELECTED = 10_000
#: What `failed` means, with the jobs that never started because of one of these.
FAILED: tuple[State, ...] = ("failed", "timed_out")
#: The code of the error of those.
BLOCKED = "DEPENDENCY_BLOCKED"


class JobFilter(Struct, forbid_unknown_fields=True, kw_only=True):
    """What jobs must be like. Empty lists mean any."""

    repo: list[str] = []
    state: list[State] = []
    kind: list[Kind] = []
    label: list[str] = []
    #: Who submitted them: `cli`, `embedded`, `run`, or `job:ID`.
    origin: list[str] = []
    #: Ids of workflow instances or EPIC runs.
    work: list[str] = []
    #: Only jobs that failed, timed out, or were blocked by one that did not succeed.
    failed: bool = False
    #: Only jobs that have not ended.
    active: bool = False

    @property
    def names_something(self) -> bool:
        """Whether it says more than how far the jobs must be."""
        lists = (
            *(self.repo, self.state, self.kind, self.label),
            *(self.origin, self.work),
        )
        return self.failed or any(lists)


class Selection(JobFilter, kw_only=True):
    """Jobs by their ids, or by what they are like, or of some ids those that are."""

    #: Ids, or unique prefixes or tails of at least 4 characters.
    jobs: list[str] = []
    #: Only jobs that no other job is a retry of.
    unretried: bool = False


def check_selection(selection: Selection) -> None:
    """Raise InvalidInput if it means every job there is."""
    if not selection.jobs and not selection.names_something:
        raise InvalidInput(
            "selection",
            "selects nothing: give jobs, repo, state, kind, label, origin, work or"
            " failed",
        )
