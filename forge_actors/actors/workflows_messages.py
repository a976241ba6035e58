"""What is said to the actor of one workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from forge_actors.actors.mailbox import Reply
from forge_actors.domain.jobs import State
from forge_actors.domain.workflow_definitions import Definition, StepDefinition
from forge_actors.domain.workflow_steps import Step, StepEnd, Workflow

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.domain.ports import Clock, Saved
    from forge_actors.domain.requests import JobRequest
    from forge_actors.domain.rounds import Marks, Turn
    from forge_actors.domain.workflow_steps import Plan


class Pause(Struct, frozen=True):
    """Nothing new begins until `Resume`; what runs goes on."""

    reply: Reply[Workflow]


class Resume(Struct, frozen=True):
    reply: Reply[Workflow]


class Cancel(Struct, frozen=True):
    """Nothing new begins, and its jobs are asked to end."""

    reply: Reply[Workflow]


class Answer(Struct, frozen=True):
    """A person says yes or no to what a step asks."""

    step: str
    yes: bool
    reply: Reply[Workflow]


class Tell(Struct, frozen=True):
    """The workflow and its steps, as they are now, with what each is to do."""

    reply: Reply[tuple[Workflow, Definition, list[tuple[Step, StepDefinition]]]]


class Count(Struct, frozen=True):
    """The workflow as it is now, and how many of its steps are in which state. A list
    of workflows has no time for every step; those of a goal are few, and told."""

    reply: Reply[
        tuple[Workflow, Definition, dict[str, int], list[tuple[Step, StepDefinition]]]
    ]


class Submitted(Struct, frozen=True):
    """What became of steps that were to have a job: its id, or why there is none."""

    outcomes: tuple[tuple[str, str | Exception], ...]


class Ended(Struct, frozen=True):
    """The job of a step has ended."""

    step: str
    job: str
    state: State


class Looked(Struct, frozen=True):
    """How the job of a step ended, with what it left."""

    step: str
    job: str
    end: StepEnd


class Due(Struct, frozen=True):
    """Steps that could not be submitted may be tried again."""


class Freed(Struct, frozen=True):
    """Steps may begin that could not when they were looked at last."""


Message = (
    Pause
    | Resume
    | Cancel
    | Answer
    | Tell
    | Count
    | Submitted
    | Ended
    | Looked
    | Due
    | Freed
)


class WorkflowStore(Protocol):
    """What the actor needs of the store."""

    def save(
        self,
        changes: Sequence[Change],
        *,
        then: Callable[[], object] | None = None,
        lazy: bool = False,
    ) -> Saved: ...

    def workflow(self, workflow: str) -> tuple[tuple[bytes, bytes], list[bytes]] | None:
        """The definition and the body of one, and the bodies of its steps, in order."""

    def active_workflows(self) -> list[str]:
        """The ids of those that have not ended, oldest first."""

    def workflow_of_request(self, request: str) -> str | None:
        """The workflow that a request began, durable or not yet."""

    def job_of_request(self, request_id: str) -> str | None:
        """The job that a request made, durable or not yet."""

    def when_ended(self, job: str, notify: Callable[[State], None]) -> None:
        """Tell once when a job has ended, at once if it has."""


class Context(Struct, frozen=True):
    """What the actor is given."""

    store: WorkflowStore
    clock: Clock
    #: Makes the plan of a workflow, from what was saved of its steps.
    plan: Callable[[Definition, list[Step]], Plan]
    #: Accepts jobs, all of them or none, and is durable when it returns; their ids.
    submit: Callable[[Sequence[JobRequest]], Awaitable[list[str]]]
    #: Asks a job to end.
    cancel: Callable[[str], Awaitable[object]]
    #: How a job that has ended did, besides its state.
    result: Callable[[str, State], Awaitable[StepEnd]]
    #: The lines that a job wrote to its standard output.
    lines: Callable[[str], Awaitable[tuple[str, ...]]]
    #: What a job that has ended so left, in its turn of a goal.
    marks: Callable[[str, Turn, StepEnd], Awaitable[Marks]]
    #: Whether a repository with this id is still there. Another one may have its name.
    has_repository: Callable[[str], bool]
