"""Job: one durable unit of work in one repository, and the table of its legal moves."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct, field, structs

from forge_actors.domain.admissions import AdmissionWanted
from forge_actors.domain.agent_views import AgentView
from forge_actors.domain.agents import Budget
from forge_actors.domain.artifacts import Artifacts
from forge_actors.domain.claims import Claim
from forge_actors.domain.effect_views import EffectsView
from forge_actors.domain.effects import Authority
from forge_actors.domain.errors import ForgeError
from forge_actors.domain.inputs import Input
from forge_actors.domain.launch import AfterJob, ProcessLimits
from forge_actors.domain.redaction import bounded
from forge_actors.domain.results import JobResult
from forge_actors.domain.verifying import Verify
from forge_actors.domain.worktrees import Isolation

State = Literal[
    "queued",
    "waiting_for_dependency",
    "waiting_for_workspace",
    "waiting_for_heavy_check",
    "waiting_for_integration",
    "waiting_for_release_barrier",
    "waiting_for_approval",
    "waiting_for_limit",
    "waiting_for_retry",
    "dispatched",
    "running",
    "succeeded",
    "failed",
    "timed_out",
    "cancelled",
    "orphaned",
    "stale",
    "human_attention_required",
]
Kind = Literal[
    "repository-command",
    "check",
    "verify-edit",
    "agent-run",
    "dispatch-task",
    "integration",
    "release-gate",
]
Replay = Literal["never", "safe", "always"]

STATES: tuple[State, ...] = get_args(State)
KINDS: tuple[Kind, ...] = get_args(Kind)
REPLAYS: tuple[Replay, ...] = get_args(Replay)

#: Characters of the message of a job's error.
MAX_MESSAGE = 2000

RESERVED: frozenset[State] = frozenset({"dispatched", "running"})
TERMINAL: frozenset[State] = frozenset(
    {
        "succeeded",
        "failed",
        "timed_out",
        "cancelled",
        "orphaned",
        "stale",
        "human_attention_required",
    }
)
WAITING: frozenset[State] = frozenset(STATES) - RESERVED - TERMINAL
ACTIVE: frozenset[State] = WAITING | RESERVED

HEAVY_KINDS: frozenset[Kind] = frozenset({"check", "verify-edit"})
AGENT_KINDS: frozenset[Kind] = frozenset({"agent-run", "dispatch-task"})
READ_ONLY_KINDS: frozenset[Kind] = HEAVY_KINDS

#: Which states may follow which. `dispatched` follows a waiting state only: it is the
#: moment in which the leases and the fence are given, and nothing else gives them.
MOVES: dict[State, frozenset[State]] = {
    **{
        state: (WAITING - {state})
        | {
            "dispatched",
            "cancelled",
            "timed_out",
            "failed",
            "stale",
            "human_attention_required",
        }
        for state in WAITING
    },
    "dispatched": frozenset[State](
        {
            "queued",
            "running",
            "waiting_for_approval",
            "waiting_for_heavy_check",
            "waiting_for_limit",
            "waiting_for_retry",
        }
    )
    | TERMINAL,
    "running": frozenset[State](
        {
            "queued",
            "waiting_for_approval",
            "waiting_for_heavy_check",
            "waiting_for_limit",
            "waiting_for_retry",
        }
    )
    | TERMINAL,
    **{state: frozenset() for state in TERMINAL},
}


class IllegalMove(ForgeError):
    """A job was asked to make a move that the table of moves does not have."""

    code = "JOB_TRANSITION_INVALID"


def check_move(before: State, after: State) -> None:
    """Raise IllegalMove unless a job may go from `before` to `after`."""
    if after not in MOVES[before]:
        raise IllegalMove(f"a job that is {before} cannot become {after}")


class JobError(Struct, frozen=True):
    """Why a job did not succeed: a stable code and one sentence.

    The end of what it printed as errors may follow. The message is cut here, so that
    no part of it that others wrote can be long, wherever it came from.
    """

    code: str
    message: str

    def __post_init__(self) -> None:
        if len(self.message) > MAX_MESSAGE:
            structs.force_setattr(self, "message", bounded(self.message, MAX_MESSAGE))


class Budgets(Struct, frozen=True, omit_defaults=True):
    """The four time budgets of a job, in seconds; None is no limit."""

    admission: float | None = None
    queue: float | None = None
    execution: float | None = None
    idle: float | None = None


class AgentChoice(Struct, frozen=True):
    """One of several agents that may do a job, and what the job is with it."""

    name: str
    provider: str
    program: str
    stop_signal: str
    grace: float


class Answer(Struct, frozen=True):
    """The digest of what a person answered, and the job that had asked: those that are
    made of it have asked nothing yet."""

    job: str
    prompt: str
    #: The attempt that had asked.
    attempt: int = 0


class AgentSpec(Struct, frozen=True, omit_defaults=True):
    """Which agent a job runs, and the digest of the prompt that is its input."""

    name: str
    prompt: str
    #: The agents that may do it, in order, where there are several.
    choices: tuple[AgentChoice, ...] = ()
    #: What its attempts from now on have as their input.
    answer: Answer | None = None
    #: The job that it goes on with, and the session that it resumes.
    continues: str | None = None
    session: str | None = None
    #: What it is asked if that session is gone: with a summary of it.
    anew: str | None = None
    #: What it may use in all of its attempts.
    budget: Budget | None = None


class JobSpec(Struct, frozen=True, omit_defaults=True, gc=False):
    """What is needed only when the job starts; kept in the store, not in memory."""

    #: Arguments that are no UTF-8 are `{"b64": "..."}`.
    argv: tuple[str | dict[str, str], ...]
    cwd: str
    env: dict[str, str] = {}
    stdin: str | None = None
    budgets: Budgets = Budgets()
    stop_signal: str = "SIGTERM"
    grace: float = 10.0
    keep_leftovers: bool = False
    exit_attempts: int = 1
    #: Names of secrets that it gets as variables.
    secrets: tuple[str, ...] = ()
    pty: bool = False
    limits: ProcessLimits | None = None
    after_job: str | None = None
    #: Patterns of files to keep of its folder.
    artifacts: tuple[str, ...] = ()
    #: Names of the values that it hands on.
    outputs: tuple[str, ...] = ()
    #: Files of earlier jobs that it finds when it starts.
    inputs: tuple[Input, ...] = ()
    #: It runs in a worktree of its own.
    isolation: Isolation | None = None
    agent: AgentSpec | None = None
    #: What its agent's work has to pass.
    verify: Verify | None = None
    #: It is to run in its checkout, whoever else is there.
    in_checkout: bool = False
    #: What it may do to the outside; None: a person asked for it, and it says nothing.
    authority: Authority | None = None
    #: The workflow instance or EPIC run that it is of.
    work: str | None = None
    #: It is a candidate that has to be admitted, and then lasts until it ends itself.
    admission: AdmissionWanted | None = None


def redirected(spec: JobSpec, choice: AgentChoice) -> JobSpec:
    """What is needed when another one of its agents does the job."""
    assert spec.agent is not None, "it is the job of one"
    return structs.replace(
        spec,
        argv=(choice.program, *spec.argv[1:]),
        stop_signal=choice.stop_signal,
        grace=choice.grace,
        agent=structs.replace(spec.agent, name=choice.name),
    )


class Job(Struct, kw_only=True, gc=False):
    """The scheduling fields of a job, as its repository's ledger holds it.

    It is part of no cycle, and there may be a hundred thousand: the collector of cycles
    is spared them.
    Times are seconds of the wall clock. Invariants:
    `fence` is set while the job is dispatched or running, never while it waits.
    """

    id: str
    repo: str
    kind: Kind
    priority: int
    claims: tuple[Claim, ...]
    tokens: tuple[str, ...]
    queued_at: float
    state: State = "queued"
    after: tuple[str, ...] = ()
    replay: Replay = "never"
    attempt: int = 0
    #: Attempts in all when it is interrupted, and when it exits non-zero by itself.
    max_attempts: int = 3
    exit_attempts: int = 1
    #: Attempts that a provider refused: they are not among those it may have.
    refused: int = 0
    fence: int | None = None
    admission_budget: float | None = None
    queue_budget: float | None = None
    started_at: float | None = None
    #: Not before this moment is it tried again, while it waits for that.
    retry_at: float | None = None
    #: Since when it is held or, while it runs, suspended because somebody asked.
    held_at: float | None = None
    #: It may be given a worktree in place of a checkout that others hold.
    isolatable: bool = False
    #: The workflow instance or EPIC run that it is of.
    work: str | None = None

    @property
    def counted(self) -> int:
        """How many of the attempts that it may have it has had."""
        passed = 0 if self.verify is None else self.verify.passed
        return self.attempt - self.refused - passed

    @property
    def ready_state(self) -> State:
        """While nothing but its turn is in its way."""
        return "waiting_for_heavy_check" if self.checking else "queued"

    @property
    def checking(self) -> bool:
        """The check of its agent's work comes next, or runs."""
        return self.verify is not None and self.verify.checking

    #: The agent whose program it needs.
    agent: str | None = None
    #: Those that may do it, in order, where there are several.
    choices: tuple[AgentChoice, ...] = ()
    #: The check that its work has to pass, and how far it is with it.
    verify: Verify | None = None


class JobView(Struct, kw_only=True, omit_defaults=False):
    """A job as every reader sees it: `show --json`, the HTTP routes, `job.wait()`."""

    id: str
    state: State
    kind: Kind
    repo: str
    name: str | None
    argv: list[str | dict[str, str]]
    priority: str
    attempt: int
    max_attempts: int
    exit_code: int | None
    signal: str | None
    forced: bool
    error: JobError | None
    waiting: dict[str, object] | None
    claims: list[str]
    after: list[str]
    provider: str | None
    replay: str
    retry_of: str | None
    labels: list[str]
    created_at: str
    queued_at: str
    started_at: str | None
    finished_at: str | None
    duration: float | None = None
    pid: int | None = None
    fence: int | None = None
    cwd: str | None = None
    origin: str | None = None
    #: The workflow instance or EPIC run that it is of.
    work: str | None = None
    request_id: str | None = None
    usage: dict[str, float] = field(default_factory=dict)
    #: Processes it left behind when it ended by itself, as `pid name`.
    leftovers: list[str] = field(default_factory=list)
    #: One of them still held its output open.
    output_held: bool = False
    #: Its time budgets in seconds, by name; those that it does not have are left out.
    budgets: dict[str, float] = field(default_factory=dict)
    #: Names of the secrets that it gets as variables.
    secrets: list[str] = field(default_factory=list)
    #: What became of the command that followed it.
    after_job: AfterJob | None = None
    #: The files that are kept of it; only where one job is shown.
    artifacts: Artifacts | None = None
    #: Files of earlier jobs that it finds when it starts, as `JOB` or `JOB:GLOB`.
    inputs: list[str] = field(default_factory=list)
    #: The values that it handed on by their names, and what is wrong with them; only
    #: where one job is shown that has declared some.
    outputs: dict[str, str] | None = None
    outputs_problem: str | None = None
    #: What went wrong beside it, such as a log that could not be written.
    problem: str | None = None
    #: Seconds the last attempt stood still, if it was paused.
    paused_seconds: float | None = None
    #: It runs, but its processes are suspended.
    paused: bool = False
    agent: AgentView | None = None
    #: The check that its work has to pass, and how far it is with that.
    verify: dict[str, object] | None = None
    #: Its own worktree: `state`, and once it is made `path`, `branch`, `base_commit`;
    #: `instead_of`: the jobs that had its checkout, if it was isolated for that.
    worktree: dict[str, object] | None = None
    #: What it did in that; only where one job is shown.
    result: JobResult | None = None
    #: Attempts that a provider refused, which do not count.
    refused: int = 0
    #: What it does to the outside, and may; None: a person asked for it.
    effects: EffectsView | None = None
