"""A workflow that was begun, its steps, and what is asked of its plan.

Moments are seconds of the wall clock since 1970, UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, get_args

from msgspec import Struct

from forge_actors.domain.jobs import State
from forge_actors.domain.rounds import Marks
from forge_actors.domain.validation import Found

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forge_actors.domain.workflow_definitions import StepDefinition

#: `asking`: a person is asked. `running`: it has a job, which waits or runs.
StepState = Literal[
    "waiting", "asking", "running", "succeeded", "failed", "skipped", "cancelled"
]
STEP_STATES: tuple[StepState, ...] = get_args(StepState)
ENDED: frozenset[StepState] = frozenset({"succeeded", "failed", "skipped", "cancelled"})
#: `cancelling`: its jobs are asked to end. `quarantined`: it cannot be read, or makes
#: its actor fail over and over.
WorkflowState = Literal[
    "running",
    "paused",
    "cancelling",
    "succeeded",
    "failed",
    "cancelled",
    "human_attention_required",
    "quarantined",
]
ACTIVE: frozenset[WorkflowState] = frozenset({"running", "paused", "cancelling"})


class Workflow(Struct, frozen=True):
    """One workflow that was begun, without its steps."""

    id: str
    name: str
    kind: str
    #: Of the definition that it goes by, whatever becomes of the file.
    digest: str
    made: float
    state: WorkflowState = "running"
    why: str | None = None
    ended: float | None = None
    #: Who began it, as an origin of jobs.
    origin: str = "cli"
    #: Its steps by state, once it has ended.
    counts: dict[str, int] = {}


class Step(Struct):
    """Where one step is. What has not begun has no row."""

    name: str
    number: int
    state: StepState = "waiting"
    #: Jobs that it has had. The next one has a name by this, so it is made once.
    tries: int = 0
    #: Jobs of it that failed since it was begun, or begun anew.
    failures: int = 0
    #: The same of those of which nothing was found out.
    undecided: int = 0
    job: str | None = None
    why: str | None = None
    outputs: dict[str, str] = {}
    approved: bool = False
    #: What its job found out, if that was a check.
    validation: Found | None = None
    #: What a campaign is about, where the job of this step found that out.
    items: tuple[str, ...] = ()
    #: Of a step of a goal.
    marks: Marks | None = None
    began: float | None = None
    ended: float | None = None


class StepEnd(Struct, frozen=True):
    """How the job of a step ended."""

    state: State
    why: str | None = None
    outputs: dict[str, str] = {}
    items: tuple[str, ...] = ()
    #: Nothing was found out: it failed for a reason that is not its own.
    retryable: bool = False
    #: Of a step of a goal.
    marks: Marks | None = None
    validation: Found | None = None


class Verdict(Struct, frozen=True):
    """How a workflow ended."""

    state: WorkflowState
    why: str | None = None


class Plan(Protocol):
    """What the actor of a workflow asks: where it is, and what comes next."""

    @property
    def verdict(self) -> Verdict | None:
        """How it ended; None while a step may still do something."""

    @property
    def steps(self) -> Sequence[Step]:
        """All of them, in order."""

    @property
    def by_name(self) -> Mapping[str, Step]:
        """The same, by name."""

    def define(self, name: str) -> StepDefinition:
        """What a step is to do."""

    def begin(self, now: float) -> list[Step]:
        """Look at every step; those that changed."""

    def take(self) -> Step | None:
        """The next step that is to have a job now. Each is given once."""

    def give_back(self, step: Step, now: float) -> list[Step]:
        """It has no job for now; it is taken again later."""

    def submitted(self, step: Step, job: str, now: float) -> list[Step]:
        """It has its job."""

    def refused(self, step: Step, why: str, now: float) -> list[Step]:
        """It can have no job."""

    def ended(self, step: Step, end: StepEnd, now: float) -> list[Step]:
        """Its job has ended; the steps that changed."""

    def answer(self, name: str, *, yes: bool, now: float) -> list[Step]:
        """A person has answered what a step asks.

        Raises:
            NotFound: there is no such step. Refused: it asks nothing.
        """

    def cancel(self, now: float) -> list[Step]:
        """Nothing begins any more."""

    def retry(self, names: Sequence[str]) -> list[Step]:
        """Have what failed begin anew, and what was left out; `begin` is next.

        Raises:
            NotFound, Refused: there is no such step, or it did not fail.
        """
