"""The arguments of the tools, as agents read them: each with a sentence of its own."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from forge_actors.domain.controllers import Disposition
from forge_actors.domain.effects import Effect
from forge_actors.domain.jobs import Kind, State
from forge_actors.domain.spending import Group

#: Jobs of one batch, and of one wait, that an agent may name.
MAX_JOBS = 200
#: Rows of one list.
MAX_ROWS = 50
#: Bytes of output that one call reads.
MAX_LOG_BYTES = 16 * 1024
#: Seconds of one wait: agents give a tool up after a while, many of them after 60 s.
WAIT_SECONDS = 45.0
MAX_WAIT_SECONDS = 3600.0


def _about(text: str) -> Meta:
    return Meta(description=" ".join(text.split()))


Selector = Annotated[
    str,
    _about(
        "A job: its id, or a unique beginning or end of it of at least 4 characters."
    ),
    Meta(min_length=1, max_length=200),
]
Selectors = Annotated[list[Selector], Meta(min_length=1, max_length=MAX_JOBS)]
Repository = Annotated[
    str,
    _about("The name of a registered repository, or an absolute path inside of one."),
    Meta(min_length=1, max_length=4096),
]
Words = Annotated[list[str], Meta(max_length=64)]


class Nothing(Struct, forbid_unknown_fields=True):
    """No arguments."""


class AddRepository(Struct, forbid_unknown_fields=True):
    path: Annotated[
        str,
        _about("Absolute path of a folder inside of a git repository on this machine."),
        Meta(min_length=1, max_length=4096),
    ]
    name: Annotated[
        str | None,
        _about("What to call it: a-z 0-9 . _ -; the folder's name by default."),
    ] = None


class NewJob(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One job: what to run, where, and when it may start."""

    command: Annotated[
        list[str],
        _about(
            """The program and its arguments, one word an element, for example ["make",
            "test"]. No shell reads it: for pipes, variables or && use ["sh", "-c",
            "..."]. With `agent`, more arguments for that program."""
        ),
        Meta(max_length=4096),
    ] = []
    repo: Annotated[
        str | None,
        _about(
            """Repository to run in: its name, or an absolute path inside of it, which
            registers one that is new. By default the folder that you were started in,
            if this server was started with you."""
        ),
    ] = None
    kind: Annotated[
        Kind,
        _about(
            """`check` and `verify-edit` read only and may run beside others, but few of
            them at once; `repository-command` may change files, so it has the checkout
            for itself; `agent-run` is the job of an agent."""
        ),
    ] = "repository-command"
    priority: Annotated[
        Literal["P0", "P1", "P2", "P3", "P4"], _about("P0 is the most urgent.")
    ] = "P2"
    after: Annotated[
        Words,
        _about(
            """Ids of jobs that must succeed first; in a batch also names of its other
            jobs."""
        ),
    ] = []
    name: Annotated[str | None, _about("A short name for people, and for `after`.")] = (
        None
    )
    labels: Annotated[Words, _about("Words to find it by with `jobs`.")] = []
    timeout: Annotated[
        str | None, _about("How long it may run, for example 90s, 10m or 2h.")
    ] = None
    read_only: Annotated[
        bool, _about("It changes no file, so others may run beside it.")
    ] = False
    claims: Annotated[
        Words,
        _about(
            """What it touches, where the default of its kind is too much, for example
            read:path:src or write:path:docs."""
        ),
    ] = []
    isolate: Annotated[
        bool | None,
        _about(
            """true: run it in a git worktree and on a branch of its own; read what it
            did with `show`."""
        ),
    ] = None
    env: Annotated[
        dict[str, str], _about("More environment variables; no secrets.")
    ] = {}
    secrets: Annotated[
        Words,
        _about("Names of stored secrets that it gets as variables of these names."),
    ] = []
    artifacts: Annotated[
        Words, _about("Patterns of files to keep when it has ended.")
    ] = []
    inputs: Annotated[
        Words,
        _about(
            """Artifacts of earlier jobs that it finds below the folder that its
            variable FORGE_INPUTS names, as JOB or JOB:GLOB. It starts after these."""
        ),
    ] = []
    outputs: Annotated[
        Words,
        _about(
            """Names of small values that it hands on: it writes lines NAME=value into
            the file that its variable FORGE_OUTPUT names, and `show` has them."""
        ),
    ] = []
    agent: Annotated[
        str | None,
        _about(
            "Run this agent with `prompt`: claude, codex, copilot, or several by comma."
        ),
    ] = None
    prompt: Annotated[str | None, _about("What that agent is to do.")] = None
    budget_cost: Annotated[
        float | None, _about("What that agent may cost in all, in US dollars.")
    ] = None
    budget_tokens: Annotated[
        int | None, _about("The tokens that it may use in all.")
    ] = None
    verify: Annotated[
        str | None,
        _about(
            """A shell command that the work of that agent has to pass, for example make
            test. What it finds goes back to the agent, to mend it."""
        ),
    ] = None
    effects: Annotated[
        list[Effect],
        _about(
            """What it does outside of this machine, such as push. Where no person began
            it, it waits for one who allows that."""
        ),
    ] = []
    unique: Annotated[
        str | None,
        _about(
            """A key: while a job with the same key waits or runs, you get that one in
            place of a new one."""
        ),
    ] = None
    request_id: Annotated[
        str | None,
        _about(
            """An id of yours for this call. If you do not know whether a call arrived,
            repeat it with the same id: there will be one job."""
        ),
    ] = None


class Batch(Struct, forbid_unknown_fields=True):
    jobs: Annotated[
        list[NewJob],
        _about("The jobs, each as `submit` takes it; `after` may name others of them."),
        Meta(min_length=1, max_length=MAX_JOBS),
    ]


class ListJobs(Struct, forbid_unknown_fields=True):
    repo: Annotated[list[Repository], _about("Only of these repositories.")] = []
    state: Annotated[list[State], _about("Only in one of these states.")] = []
    kind: Annotated[list[Kind], _about("Only of these kinds.")] = []
    label: Annotated[Words, _about("Only with all of these labels.")] = []
    work: Annotated[
        Words, _about("Only of these workflow instances or EPIC runs, by their ids.")
    ] = []
    failed: Annotated[
        bool,
        _about("Only those that failed, timed out, or were blocked by one that did."),
    ] = False
    active: Annotated[bool, _about("Only those that have not ended.")] = False
    mine: Annotated[bool, _about("Only those that you submitted through here.")] = False
    limit: Annotated[int, _about("How many at most."), Meta(ge=1, le=MAX_ROWS)] = 20
    before: Annotated[
        str | None,
        _about("Only older ones than this id: `next` of the page before."),
    ] = None


class OneJob(Struct, forbid_unknown_fields=True):
    job: Selector


class SeveralJobs(Struct, forbid_unknown_fields=True):
    jobs: Selectors


class ReadLog(Struct, forbid_unknown_fields=True):
    job: Selector
    stream: Literal["stdout", "stderr"] = "stdout"
    offset: Annotated[
        int | None,
        _about(
            """Byte to begin at; a negative one counts from the end. By default the last
            `limit` bytes."""
        ),
    ] = None
    limit: Annotated[
        int, _about("How many bytes at most."), Meta(ge=1, le=MAX_LOG_BYTES)
    ] = 8192
    attempt: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        _about("Of this attempt; by default the last one."),
    ] = None


class Wait(Struct, forbid_unknown_fields=True):
    jobs: Selectors
    timeout: Annotated[
        float,
        _about(
            """Seconds to wait at most. Choose it below the limit that you have for one
            call."""
        ),
        Meta(ge=0, le=MAX_WAIT_SECONDS),
    ] = WAIT_SECONDS


class Cancel(Struct, forbid_unknown_fields=True):
    jobs: Selectors
    grace: Annotated[
        Annotated[float, Meta(ge=0, le=MAX_WAIT_SECONDS)] | None,
        _about("Seconds that one that runs has to end by itself; 10 by default."),
    ] = None


class Retry(Struct, forbid_unknown_fields=True):
    jobs: Selectors
    resume: Annotated[
        bool,
        _about("For jobs of agents: go on in the same session and worktree."),
    ] = False


class Approve(Struct, forbid_unknown_fields=True):
    job: Selector
    decision: Annotated[
        Literal["approve", "answer", "deny"],
        _about(
            """`approve`: go on. `answer`: go on with `text` as the answer. `deny`: end
            it as failed, with `text` as the reason."""
        ),
    ]
    text: Annotated[str, Meta(max_length=100_000)] | None = None


class Usage(Struct, forbid_unknown_fields=True):
    by: Annotated[Group, _about("What to add it up by.")] = "day"
    since: Annotated[
        str | None,
        _about("From when on: a span such as 7d, a day such as 2026-01-31, or a time."),
    ] = None


class Templates(Struct, forbid_unknown_fields=True):
    repo: Annotated[
        Repository | None, _about("Only those of this repository, and of the home.")
    ] = None


class ByTemplate(Struct, forbid_unknown_fields=True):
    template: Annotated[
        str, _about("Its name, as `templates` has it."), Meta(min_length=1)
    ]
    repo: Annotated[
        Repository | None,
        _about("Where its job runs; by default where you were started."),
    ] = None
    values: Annotated[
        dict[str, str | int | float | bool],
        _about("What is put into its places, by the name of the parameter."),
    ] = {}
    name: Annotated[str | None, _about("A short name for people.")] = None
    labels: Annotated[Words, _about("Words to find it by with `jobs`.")] = []
    after: Annotated[Words, _about("Ids of jobs that must succeed first.")] = []
    request_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        _about("The same id again submits nothing more."),
    ] = None


class Workflows(Struct, forbid_unknown_fields=True):
    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        _about("One workflow, by id or name, with its steps. Without it: the newest."),
    ] = None
    action: Annotated[
        Literal["show", "pause", "resume", "cancel", "retry"],
        _about("`retry` begins failed steps anew; `cancel` ends its jobs."),
    ] = "show"


class Controllers(Struct, forbid_unknown_fields=True):
    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        _about("One controller, with what woke it. Without it: all of them."),
    ] = None


class EndTurn(Struct, forbid_unknown_fields=True):
    disposition: Annotated[
        Disposition,
        _about(
            """`continue_immediately`: another turn at once. `wait`: until something
            wakes you. `wait_for_user`: until a person has looked. `goal_complete`:
            nothing is left to do."""
        ),
    ]
    note: Annotated[
        str, _about("What is next, or what you wait for."), Meta(max_length=2000)
    ] = ""
    state: Annotated[
        str,
        _about(
            """Where the work stands, in a few words. The same words again count as no
            progress."""
        ),
        Meta(max_length=2000),
    ] = ""
    controller: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        _about("Its name; by default that of the job that you are."),
    ] = None


class Schedules(Struct, forbid_unknown_fields=True):
    name: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        _about("One schedule, with what became of its times. Without it: all of them."),
    ] = None
    action: Annotated[
        Literal["show", "run", "pause", "resume"],
        _about("`run` submits its job now; `pause` and `resume` are about its times."),
    ] = "show"
    request_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        _about("With `run`: the same id again submits nothing more."),
    ] = None
