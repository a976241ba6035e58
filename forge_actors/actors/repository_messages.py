"""What a repository's actor is told and asked."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from forge_actors.actors.mailbox import Reply
from forge_actors.actors.tokens import Grant
from forge_actors.domain.accounts import Account
from forge_actors.domain.capacity import RepositoryLimits
from forge_actors.domain.day_budgets import SpentBudget
from forge_actors.domain.edits import Edit
from forge_actors.domain.effects import Approval
from forge_actors.domain.jobs import Job, State
from forge_actors.domain.launch import WorkerExited, WorkerStarted
from forge_actors.domain.place import Waits
from forge_actors.domain.policies import Policy
from forge_actors.domain.recovery import StopReason
from forge_actors.domain.scopes import Pause
from forge_actors.domain.steering import Steering


class Enqueue(Struct, frozen=True):
    """Jobs that were accepted, and saved as waiting."""

    jobs: tuple[Job, ...]


class Granted(Struct, frozen=True):
    grant: Grant


class DependencyEnded(Struct, frozen=True):
    job: str
    state: State


class Cancel(Struct, frozen=True):
    """End jobs, but for those that have ended; answered once that is durable.

    The answer names those that run and are being stopped.
    """

    jobs: tuple[str, ...]
    grace: float | None
    reply: Reply[list[str]]


class Steer(Struct, frozen=True):
    """Hold jobs or suspend them, or let them go on; answered once that is durable.

    The answer says of each job of which that was refused why; the others are done.
    """

    jobs: tuple[str, ...]
    how: Steering
    reply: Reply[dict[str, str]]


class OfWaiting(Struct, frozen=True):
    """What is asked of one job that waits."""

    job: str


class EditJob(OfWaiting, frozen=True):
    """Change a job that waits; answered once that is durable.

    With `unchanged` only if that is true of what is saved by then.
    """

    edit: Edit
    reply: Reply[None]
    unchanged: Callable[[], bool] | None = None


class AnswerJob(OfWaiting, frozen=True):
    """Let a job go on that asks something, or end it; answered once that is durable.

    `answer` is the digest of the text, None if it is denied.
    """

    answer: str | None
    reason: str
    reply: Reply[None]


class ApproveJob(OfWaiting, frozen=True):
    """A person allows what a job would do to the outside; answered once durable."""

    approval: Approval
    reply: Reply[None]


class PauseHere(Struct, frozen=True):
    """Begin or end the pause of the repository; answered once that is durable.

    With `jobs` what runs is suspended, or goes on, too.
    """

    on: bool
    jobs: bool
    reply: Reply[None]


class Withdraw(Struct, frozen=True):
    """A job that was dispatched ahead is to begin no more, if it has not."""

    job: str
    attempt: int


class LetGoOfLeft(Struct, frozen=True):
    """Free the claims that are kept for what a job left, though nothing is proven gone.

    Answered once that is durable, with whether there were any.
    """

    job: str
    reply: Reply[bool]


class PausesChanged(Struct, frozen=True):
    """All pauses that the supervisor owns; `let_go` is a scope in which jobs that were
    suspended one by one go on."""

    pauses: tuple[Pause, ...]
    let_go: str | None = None


class AccountsChanged(Struct, frozen=True):
    """All accounts of providers that are closed, the tokens of those of them that a job
    may try, and the budgets that are spent, also those of other repositories."""

    closed: tuple[Account, ...]
    tried: frozenset[str] = frozenset()
    spent: tuple[SpentBudget, ...] = ()


class PolicyChanged(Struct, frozen=True):
    """The policy from now on; None if it keeps nothing from starting."""

    policy: Policy | None


class Explain(Struct, frozen=True):
    """What these jobs wait for; those that are not waiting here are left out."""

    jobs: tuple[str, ...]
    reply: Reply[dict[str, Waits]]


class AskStopped(Struct, frozen=True):
    """Whether the attempt that a job is in is being ended."""

    job: str
    reply: Reply[bool]


class Relocated(Struct, frozen=True):
    """The repository moved: what its jobs claim is to be read from the store again."""


class SetEnabled(Struct, frozen=True):
    enabled: bool


class SetLimits(Struct, frozen=True):
    limits: RepositoryLimits


class Pass(Struct, frozen=True):
    """The safety pass: look at everything again."""


class Stop(Struct, frozen=True):
    """Start nothing more, stop the workers, record their exits and end."""

    reason: StopReason


Message = (
    Enqueue
    | Granted
    | WorkerStarted
    | WorkerExited
    | DependencyEnded
    | Cancel
    | Explain
    | AskStopped
    | Steer
    | EditJob
    | AnswerJob
    | ApproveJob
    | PauseHere
    | LetGoOfLeft
    | PausesChanged
    | AccountsChanged
    | PolicyChanged
    | Relocated
    | Withdraw
    | SetEnabled
    | SetLimits
    | Pass
    | Stop
)


#: Messages with a reply.
ASKS = (
    Cancel,
    Explain,
    AskStopped,
    Steer,
    EditJob,
    AnswerJob,
    ApproveJob,
    PauseHere,
    LetGoOfLeft,
)
