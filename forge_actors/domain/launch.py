"""What a launcher is told, and what it tells: orders, starts and receipts."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from forge_actors.domain.admissions import AdmissionWanted
from forge_actors.domain.agents import AgentReport
from forge_actors.domain.effects import RefusedEffect
from forge_actors.domain.inputs import InputsWanted
from forge_actors.domain.outputs import ToldOutputs
from forge_actors.domain.verifying import CheckReport
from forge_actors.domain.worktrees import WorktreePlace, WorktreeWanted

#: Why an attempt ended, as the launcher saw it. `exit`: by itself. `stop`: it was
#: asked to. `cancel`: it was asked to by a person, for good. `wall`, `idle`: a time
#: budget ran out. `owner`: the runtime went away.
#: `spawn`: it never began. `withdrawn`: there was no room for it before it was asked
#: not to begin. `lost`: the launcher itself died, so the outcome is unknown.
Ending = Literal[
    "exit",
    "stop",
    "cancel",
    "wall",
    "idle",
    "owner",
    "spawn",
    "withdrawn",
    "lost",
]


class ProcessIdentity(Struct, frozen=True, omit_defaults=True):
    """What names one process for ever: a pid alone is used again.

    `namespace` is the inode of the pid namespace that the pid belongs to, 0 where there
    is none. In another one the same number is another process.
    """

    boot_id: str
    pid: int
    start_ticks: int
    namespace: int = 0


class Secrets(dict[str, str]):
    """Values by the names of their variables; printed as their names alone."""

    def __repr__(self) -> str:
        return f"<secrets: {', '.join(self) or 'none'}>"

    __str__ = __repr__


class ProcessLimits(Struct, frozen=True, omit_defaults=True):
    """What the system keeps a job's processes to.

    `nice` is added to the niceness, 0 to 19. `memory` is in bytes, `pids` a number of
    processes and threads. Both are for the job as a whole where cgroups can keep them.
    Elsewhere `memory` is for each process, and `pids` is how many the user may have
    beyond what it has when the job starts.
    """

    nice: int = 0
    memory: int | None = None
    pids: int | None = None


class ArtifactOrder(Struct, frozen=True):
    """Which files of a job's folder are to be kept in the home, and how many."""

    patterns: tuple[str, ...]
    home: str
    files: int
    bytes: int
    seconds: float


class LaunchOrder(Struct, frozen=True, omit_defaults=True):
    """Everything needed to start one attempt of one job."""

    job: str
    repo: str
    attempt: int
    fence: int
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    stdin: str | None
    #: Path without suffix; the launcher appends `.stdout` and `.stderr`.
    log: str
    #: Bytes kept of each stream: the first half and a ring of the last half.
    output_limit: int
    wall: float | None
    idle: float | None
    stop_signal: str
    grace: float
    keep_leftovers: bool
    #: More variables, whose values are masked in the output and told to nobody else.
    secrets: dict[str, str] = Secrets()
    #: Why it cannot be started at all; nothing is launched then. With a code, if that
    #: has one of its own.
    problem: str | None = None
    problem_code: str | None = None
    #: Its three streams are a terminal; what it prints there is its stdout.
    pty: bool = False
    limits: ProcessLimits | None = None
    #: A shell command to run when nothing of the job is left, whatever it came to.
    after_job: str | None = None
    #: Before that: files of its folder to keep.
    artifacts: ArtifactOrder | None = None
    #: It finds a file for its outputs.
    outputs: bool = False
    #: It has no time budgets and runs until it ends by itself. A stop is a stop signal
    #: to its first process, twice at most, and nothing else.
    lasting: bool = False
    #: It finds wrappers of git and gh, which keep it from effects.
    guarded: bool = False
    #: To be made before it is launched. No launcher sees one.
    wanted: WorktreeWanted | None = None
    #: Files of earlier jobs, which are to be in their places before it is launched.
    inputs: InputsWanted | None = None
    #: It is to be admitted before it is launched.
    admission: AdmissionWanted | None = None
    #: None could be made, and the job can do without: `problem` says why.
    no_worktree: bool = False
    #: Where its process has to be; checked before it starts.
    worktree: WorktreePlace | None = None
    #: It begins once fewer attempts than that run, after those that were ordered so
    #: before it.
    room: int | None = None


class Collected(Struct, frozen=True, omit_defaults=True):
    """What became of the artifacts of a job; which there are the home says.

    `left_out`: not all that was asked for is there. `error` says why nothing is.
    `unfinished`: the launcher was lost while they were collected.
    """

    left_out: bool = False
    error: str | None = None
    unfinished: bool = False


class AfterJob(Struct, frozen=True, omit_defaults=True):
    """What became of the command that followed a job.

    `error` says why it did not run, or what could not be done. `unfinished`: the
    launcher was lost while it ran.
    """

    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    error: str | None = None
    unfinished: bool = False


class Receipt(Struct, frozen=True, omit_defaults=True):
    """How one attempt ended; written down before anyone is told.

    `exit_code` and `signal` exclude each other; both are None for `spawn` and `lost`.
    Times are seconds of the wall clock, usage is seconds of CPU and KiB of memory.
    """

    job: str
    attempt: int
    fence: int
    ending: Ending
    ended_at: float
    started_at: float | None = None
    identity: ProcessIdentity | None = None
    exit_code: int | None = None
    signal: str | None = None
    forced: bool = False
    #: Seconds it stood still because it was paused; no budget counts them.
    paused_seconds: float = 0.0
    error: str | None = None
    #: That of the job's error, if it never began for a reason that has one of its own.
    code: str | None = None
    user_seconds: float = 0.0
    system_seconds: float = 0.0
    max_rss_kib: int = 0
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    #: How many of these, the last ones, the log could not take: its disk was full.
    stdout_lost: int = 0
    stderr_lost: int = 0
    #: The last 16 KiB of stderr, or of the terminal, undecodable bytes replaced.
    stderr_tail: str = ""
    #: Processes the job left behind when it ended by itself, as `pid name`.
    leftovers: tuple[str, ...] = ()
    #: A stream that a leftover still held open when the job ended.
    output_held: bool = False
    after_job: AfterJob | None = None
    artifacts: Collected | None = None
    #: What it wrote as its outputs, if it had a file for them.
    outputs: ToldOutputs | None = None
    #: The runtime that gave the order, and the release it was of.
    instance: str = ""
    release: str = ""
    #: What could not be proven gone: it was lost, the kernel holds it, or this user may
    #: not end it. `error` says why.
    remaining: tuple[ProcessIdentity, ...] = ()
    #: The system ended some of it, since all of it together used more than it may.
    out_of_memory: bool = False
    #: What it told, if it was an agent; added by whoever reads its output.
    agent: AgentReport | None = None
    #: Effects that it was kept from; added by whoever reads what the wrappers wrote.
    refused: tuple[RefusedEffect, ...] = ()
    #: What is known of it, if it was a check that failed; added by whoever ran it.
    check: CheckReport | None = None
    #: It ended before the set-up of its worktree was done: what that was at, and why.
    setup_error: str | None = None

    #: No worktree could be made for it, and it can do without one.
    no_worktree: bool = False

    #: It says what the job came to while something of the job still ran. Nobody but the
    #: launcher itself sees one of these.
    unfinished: bool = False

    @property
    def complete(self) -> bool:
        """Nothing of the attempt can be running any more."""
        parts = (self, self.artifacts, self.after_job)
        return not any(part is not None and part.unfinished for part in parts)


class WorkerStarted(Struct, frozen=True):
    """A worker's notice: the process of an attempt runs."""

    job: str
    attempt: int
    identity: ProcessIdentity


class WorkerExited(Struct, frozen=True):
    """A worker's notice, one for each attempt: its process tree is gone."""

    job: str
    attempt: int
    receipt: Receipt
