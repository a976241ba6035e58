"""Changes: what a move alters, as data. A store saves them; each carries its event.

Those of an attempt carry its fence. A store refuses one whose attempt is not the
current one of its job: whoever made it is late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.controller_changes import ControllerChange
from forge_actors.domain.epic_changes import EpicChange
from forge_actors.domain.events import Event
from forge_actors.domain.policy_changes import PolicySet
from forge_actors.domain.schedule_changes import ScheduleChange
from forge_actors.domain.trust_changes import TrustChange
from forge_actors.domain.workflow_changes import (
    StepSaved,
    WorkflowAdded,
    WorkflowSaved,
    WorkflowsForgotten,
)

if TYPE_CHECKING:
    from forge_actors.domain.accounts import Account
    from forge_actors.domain.claims import Claim
    from forge_actors.domain.edits import Edit
    from forge_actors.domain.effects import Approval, RefusedEffect
    from forge_actors.domain.inbox import Mark
    from forge_actors.domain.jobs import AgentChoice, Job, JobError, JobSpec, State
    from forge_actors.domain.launch import ProcessIdentity, Receipt
    from forge_actors.domain.looking import Look
    from forge_actors.domain.maintenance import ClassVisit, CleanRun
    from forge_actors.domain.poison import Poison
    from forge_actors.domain.quarantine import Quarantine
    from forge_actors.domain.relocation import Relocation
    from forge_actors.domain.repositories import Repository
    from forge_actors.domain.scopes import Pause
    from forge_actors.domain.spending import AttemptUsage
    from forge_actors.domain.verifying import Verify
    from forge_actors.domain.webhooks import HookMark
    from forge_actors.domain.worktrees import Isolation, Worktree


class JobDetails(Struct, frozen=True, gc=False):
    """What readers want to know of a job and its scheduler never asks."""

    created_at: float
    origin: str
    name: str | None = None
    labels: tuple[str, ...] = ()
    provider: str | None = None
    unique: str | None = None
    request_id: str | None = None
    digest: str | None = None
    retry_of: str | None = None


class JobAdded(Struct, frozen=True, gc=False):
    job: Job
    spec: JobSpec
    details: JobDetails
    event: Event


class JobWaits(Struct, frozen=True):
    """A waiting job waits for something else than before."""

    job: str
    state: State
    event: Event


class JobDispatched(Struct, frozen=True):
    """The reservation: from here on the attempt may have run."""

    job: str
    repo: str
    attempt: int
    fence: int
    at: float
    event: Event


class JobRan(Struct, frozen=True):
    job: str
    attempt: int
    fence: int
    identity: ProcessIdentity
    at: float
    event: Event


class JobRequeued(Struct, frozen=True):
    """The attempt is over and the job waits for another one, not before `retry_at`."""

    job: str
    attempt: int
    fence: int
    state: State
    error: JobError | None
    at: float
    event: Event
    retry_at: float | None = None
    #: Attempts of it that were refused by a provider, and so do not count.
    refused: int = 0
    #: It goes on to the next step of being verified, or keeps its place in line.
    verify: Verify | None = None
    queued_at: float | None = None


class JobEnded(Struct, frozen=True):
    """The job has ended: the attempt of this fence, or without one while it waited."""

    job: str
    attempt: int
    fence: int | None
    state: State
    error: JobError | None
    at: float
    receipt: Receipt | None
    event: Event


class AttemptUsed(Struct, frozen=True):
    """What an attempt of an agent used, saved with its end."""

    used: AttemptUsage
    event: None = None


class JobDelegated(Struct, frozen=True):
    """An attempt handed its work to another job; of several the first counts."""

    job: str
    attempt: int
    fence: int
    child: str
    event: Event


class Quarantined(Struct, frozen=True):
    """The job has ended, and its claims are kept."""

    quarantine: Quarantine
    event: Event


class QuarantineEnded(Struct, frozen=True):
    """What the job left is gone: its claims are free."""

    job: str
    event: Event


class SetAside(Struct, frozen=True):
    """A job, or a whole repository, is left alone: it makes its actor fail."""

    poison: Poison
    event: Event


class TakenBack(Struct, frozen=True):
    """What was set aside of a repository is so no more: one job, or under no name the
    repository itself; without `job` all of it."""

    repo: str
    event: Event
    job: str | None = None


class JobIsolated(Struct, frozen=True):
    """A waiting job gets a worktree of its own, so that it has to wait for nobody.

    Without `isolation` it is to have none: it waits for its checkout, for good.
    """

    job: str
    claims: tuple[Claim, ...]
    isolation: Isolation | None
    event: Event


class JobRedirected(Struct, frozen=True):
    """Another one of its agents is to do a waiting job."""

    job: str
    choice: AgentChoice
    event: Event


class JobAnswered(Struct, frozen=True):
    """What a job asked was answered: it is queued, and goes on with this text, which
    is named by its digest."""

    job: str
    answer: str
    event: Event
    state: State = "queued"
    #: The attempt that had asked.
    attempt: int = 0


class JobApproved(Struct, frozen=True):
    """A person has allowed what a job would do to the outside: it waits for that no
    more."""

    job: str
    approval: Approval
    event: Event
    state: State


class EffectsRefused(Struct, frozen=True):
    """An attempt was kept from these effects."""

    job: str
    refused: tuple[RefusedEffect, ...]
    event: Event


class JobHeld(Struct, frozen=True):
    """A waiting job is held, or a running one suspended, since then; None ends that."""

    job: str
    since: float | None
    event: Event


class JobEdited(Struct, frozen=True):
    """A waiting job is not what it was accepted as any more."""

    job: str
    edit: Edit
    event: Event


class PauseBegan(Struct, frozen=True):
    """A pause, or one that suspends jobs from now on."""

    pause: Pause
    event: Event


class PauseEnded(Struct, frozen=True):
    scope: str
    event: Event


class AccountChanged(Struct, frozen=True):
    """The account of a provider was closed, or opened."""

    account: Account
    event: Event


class ItemMarked(Struct, frozen=True):
    """Somebody has seen to an item of the inbox, or was told of it."""

    mark: Mark
    event: Event | None = None


class HookChanged(Struct, frozen=True):
    """How far a webhook is; told where it is closed or opened."""

    mark: HookMark
    event: Event | None = None


class RepositoryAdded(Struct, frozen=True):
    repository: Repository
    event: Event


class RepositoryChanged(Struct, frozen=True):
    """Everything of a repository but its fence and its last dispatch.

    With `moved` the folders and claims of its jobs that have not ended follow it, and
    the claims that are kept for what jobs left.
    """

    repository: Repository
    event: Event
    moved: Relocation | None = None


class WorktreeChanged(Struct, frozen=True):
    """All that is known of a worktree now; the first one adds it."""

    worktree: Worktree
    event: Event


class LookSaved(Struct, frozen=True):
    """All that is known of the git status of a repository, and whether it is out of
    date. Told only where it is news."""

    look: Look
    event: Event | None = None


class SettingsChanged(Struct, frozen=True):
    """The event says what changed; unlike one that is only noted it can be refused."""

    event: Event


class Noted(Struct, frozen=True):
    """An event that alters nothing."""

    event: Event


class ForgottenJob(Struct, frozen=True, gc=False):
    """An ended job whose row goes, and what it is counted as until then."""

    job: str
    repo: str
    state: State


class JobsForgotten(Struct, frozen=True):
    """Retention removes ended jobs that nothing refers to. Told of by the run."""

    jobs: tuple[ForgottenJob, ...]
    forgotten_at: float
    event: None = None


class EventsForgotten(Struct, frozen=True):
    """The history begins behind the row with this number."""

    until: int
    event: None = None


class ClassVisited(Struct, frozen=True):
    """A visit of the clean-up has begun, or has ended."""

    visit: ClassVisit
    event: None = None


class CleanRunChanged(Struct, frozen=True):
    """A run of the clean-up has begun, or has ended; an event if it did anything."""

    run: CleanRun
    event: Event | None = None


#: What has no effect unless it is of the current attempt.
OfAttempt = JobDispatched | JobRan | JobRequeued | JobDelegated | JobEnded
Change = (
    JobAdded
    | JobWaits
    | JobDispatched
    | JobRan
    | JobRequeued
    | JobEnded
    | JobDelegated
    | AttemptUsed
    | Quarantined
    | QuarantineEnded
    | SetAside
    | TakenBack
    | JobIsolated
    | JobRedirected
    | JobAnswered
    | JobApproved
    | EffectsRefused
    | JobHeld
    | JobEdited
    | PauseBegan
    | PauseEnded
    | AccountChanged
    | PolicySet
    | ItemMarked
    | HookChanged
    | RepositoryAdded
    | RepositoryChanged
    | WorktreeChanged
    | LookSaved
    | ScheduleChange
    | TrustChange
    | ControllerChange
    | EpicChange
    | WorkflowAdded
    | WorkflowSaved
    | StepSaved
    | WorkflowsForgotten
    | SettingsChanged
    | Noted
    | JobsForgotten
    | EventsForgotten
    | ClassVisited
    | CleanRunChanged
)
