"""Workflows as people write them and as everybody sees them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from forge_actors.domain.rounds import (
    DEFAULT_FAILURES,
    DEFAULT_REPEATS,
    DEFAULT_ROUNDS,
)
from forge_actors.domain.step_waits import StepWait
from forge_actors.domain.validation import Found
from forge_actors.domain.workflow_definitions import Kind, OnFailure, When
from forge_actors.domain.workflow_steps import StepState, WorkflowState


class StepRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A step of a portfolio: `job` has the fields of a job, `gate` what a person is
    asked first; one of them there is."""

    name: str
    job: dict[str, Any] | None = None
    repo: str | None = None
    after: list[str] = []
    when: When = "succeeded"
    #: Such as `build.changed == "yes"`: without that it is left out.
    condition: str | None = msgspec.field(name="if", default=None)
    retries: int = 0
    gate: str | None = None
    #: Artifacts of earlier steps, `STEP` or `STEP:PATTERN`.
    inputs: list[str] = []


class CommandRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A job each line of whose output is an item."""

    repo: str
    argv: list[str]


class FilesRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Files and folders in a checkout, as `services/*/pyproject.toml`."""

    repo: str
    glob: str


class ItemsRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a campaign is about; one of these there is."""

    of: list[str] | None = msgspec.field(name="list", default=None)
    #: Patterns of names of repositories.
    repositories: list[str] | None = None
    files: FilesRequest | None = None
    command: CommandRequest | None = None


class TemplateRequest(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """What a campaign does for each item: `${item}` is that in its texts."""

    job: dict[str, Any]
    repo: str | None = None
    retries: int = 0


class PartRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The act or the check of a goal: `${round}` is the number of the round in its
    texts."""

    job: dict[str, Any]


class GoalRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """When a goal is given up. `time` is seconds, or text such as `2h`."""

    rounds: int = DEFAULT_ROUNDS
    time: str | float | None = None
    #: What its agents may use in all rounds together, in tokens and in US dollars.
    tokens: int | None = None
    cost: float | None = None
    #: How often the check may fail in the same way over the same files, and how often
    #: in a row the act may fail.
    repeats: int = DEFAULT_REPEATS
    failures: int = DEFAULT_FAILURES


class WorkflowRequest(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A workflow to begin: what a file of one says."""

    name: str
    kind: Kind = "portfolio"
    #: The repository of steps that name none.
    repo: str | None = None
    on_failure: OnFailure = "skip"
    parallel: int | None = None
    #: Values for `${NAME}` in the jobs.
    parameters: dict[str, str] = {}
    steps: list[StepRequest] = []
    #: Of a campaign: what it is about, what it does for each, how many go first, and
    #: how many may fail before nothing new begins.
    items: ItemsRequest | None = None
    template: TemplateRequest | None = None
    canary: int = 0
    stop_after: int | None = None
    #: Of a goal: when it is given up, what works on it, and what tells that it is
    #: reached.
    goal: GoalRequest | None = None
    act: PartRequest | None = None
    check: PartRequest | None = None
    #: The file that it came from.
    source: str | None = None
    #: The same id again begins nothing more.
    request_id: str | None = None


class StepView(Struct, frozen=True):
    """A step as it is now. Times are RFC 3339, UTC."""

    name: str
    state: StepState
    after: tuple[str, ...]
    job: str | None
    #: Jobs that it has had.
    tries: int
    why: str | None
    #: What a person is asked.
    gate: str | None
    outputs: dict[str, str]
    began_at: str | None
    ended_at: str | None
    #: What its last job found out, if that was a check.
    validation: Found | None = None
    #: Why it does not run now; of some of them, where one workflow is shown.
    waiting: StepWait | None = None


class GoalView(Struct, frozen=True):
    """How far a goal is since it was begun, or begun anew: its rounds, and what its
    agents have used, as far as they told. None is no limit."""

    round: int
    rounds: int
    seconds: float | None
    used_tokens: int
    tokens: int | None
    used_cost: float
    cost: float | None


class WorkflowView(Struct, frozen=True):
    """A workflow as it is now. Times are RFC 3339, UTC."""

    id: str
    name: str
    kind: str
    state: WorkflowState
    why: str | None
    #: SHA-256 of what it was begun with; a file that is changed later is not it.
    digest: str
    origin: str
    made_at: str
    ended_at: str | None
    #: How many steps are in which state.
    counts: dict[str, int]
    source: str | None = None
    goal: GoalView | None = None
    #: In order; lists of workflows do not have them.
    steps: tuple[StepView, ...] = ()
