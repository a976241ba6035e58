"""What a store in memory holds, and what each change makes of it."""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.answers import answered, approved
from forge_actors.domain.capacity import direct, go_to_step
from forge_actors.domain.changes import (
    AccountChanged,
    AttemptUsed,
    ClassVisited,
    CleanRunChanged,
    EffectsRefused,
    EventsForgotten,
    HookChanged,
    ItemMarked,
    JobAdded,
    JobAnswered,
    JobApproved,
    JobDelegated,
    JobDispatched,
    JobEdited,
    JobEnded,
    JobHeld,
    JobIsolated,
    JobRan,
    JobRedirected,
    JobRequeued,
    JobsForgotten,
    JobWaits,
    LookSaved,
    Noted,
    OfAttempt,
    PauseBegan,
    PauseEnded,
    Quarantined,
    QuarantineEnded,
    RepositoryAdded,
    RepositoryChanged,
    SetAside,
    SettingsChanged,
    TakenBack,
    WorktreeChanged,
)
from forge_actors.domain.controller_changes import (
    ControllerRemoved,
    ControllerSaved,
    WakeSaved,
)
from forge_actors.domain.controllers import MAX_WAKES
from forge_actors.domain.epic_changes import EpicSaved, EpicsForgotten
from forge_actors.domain.errors import StaleFence
from forge_actors.domain.events import Event
from forge_actors.domain.isolation import with_isolation
from forge_actors.domain.jobs import (
    RESERVED,
    TERMINAL,
    WAITING,
    Job,
    JobSpec,
    redirected,
)
from forge_actors.domain.ownership import Owner
from forge_actors.domain.policies import Policy
from forge_actors.domain.policy_changes import PolicySet
from forge_actors.domain.schedule_changes import (
    OccurrenceSaved,
    ScheduleRemoved,
    ScheduleSaved,
)
from forge_actors.domain.schedules import MAX_OCCURRENCES
from forge_actors.domain.scopes import repository_scope
from forge_actors.domain.trust_changes import TrustDiffers, TrustRemoved, TrustSaved
from forge_actors.domain.workflow_changes import (
    StepSaved,
    WorkflowAdded,
    WorkflowSaved,
    WorkflowsForgotten,
)
from forge_actors.domain.workflow_records import UnreadableWorkflow, header_of
from forge_actors.domain.workflow_steps import ACTIVE
from forge_actors.testing.kept_store import KeptRows

if TYPE_CHECKING:
    from forge_actors.domain.accounts import Account
    from forge_actors.domain.changes import Change
    from forge_actors.domain.effects import RefusedEffect
    from forge_actors.domain.inbox import Mark
    from forge_actors.domain.looking import Look
    from forge_actors.domain.poison import Poison
    from forge_actors.domain.quarantine import Quarantine
    from forge_actors.domain.relocation import Relocation
    from forge_actors.domain.repositories import Repository
    from forge_actors.domain.schedules import Occurrence
    from forge_actors.domain.scopes import Pause
    from forge_actors.domain.webhooks import HookMark
    from forge_actors.domain.worktrees import Worktree


class Rows(KeptRows):
    """What a store holds: its jobs, its repositories, its events."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[str, Job] = {}
        self.specs: dict[str, JobSpec] = {}
        self.repositories: dict[str, Repository] = {}
        self.pauses: dict[str, Pause] = {}
        #: By provider.
        self.accounts: dict[str, Account] = {}
        self.policy = Policy()
        #: By item of the inbox.
        self.marks: dict[str, Mark] = {}
        #: By name.
        self.hooks: dict[str, HookMark] = {}
        #: By parent.
        self.children: dict[str, str] = {}
        self.quarantined: dict[str, Quarantine] = {}
        #: By repository and job.
        self.poisoned: dict[tuple[str, str], Poison] = {}
        self.worktrees: dict[str, Worktree] = {}
        #: By job.
        self.refused_effects: dict[str, tuple[RefusedEffect, ...]] = {}
        self.looks: dict[str, Look] = {}
        #: By id: each with its name and its body.
        #: The state, the definition and the body of each.
        self.workflows: dict[str, tuple[str, bytes, bytes]] = {}
        self.workflow_steps: dict[tuple[str, str], tuple[int, bytes]] = {}
        #: By the request that began them.
        self.workflow_requests: dict[str, str] = {}
        self.schedules: dict[str, tuple[str, str, bytes]] = {}
        self.occurrences: dict[str, Occurrence] = {}
        #: By repository: what is trusted of it, and how it differs.
        self.trusted: dict[str, tuple[bytes, bytes | None]] = {}
        #: The id, the name, the state and the body of each.
        self.controllers: dict[str, tuple[str, str, str, bytes]] = {}
        #: The controller, the number, the state and the body of each.
        self.wakes: dict[str, tuple[str, int, str, bytes]] = {}
        #: Whether it goes on, the request and the body of each run.
        self.epics: dict[str, tuple[bool, str | None, bytes]] = {}
        self.events: list[Event] = []
        self.owner: Owner | None = None

    def check(self, change: Change) -> None:
        """Refuse what is of an attempt that is not the current one.

        Raises:
            StaleFence: it is.
        """
        if not isinstance(change, OfAttempt):
            return
        job = self.jobs[change.job]
        if isinstance(change, JobDispatched):
            newer = change.fence > self.repositories[change.repo].fence
            good = newer and job.state in WAITING
        elif change.fence is None:
            good = job.state in WAITING
        else:
            current = (change.attempt, change.fence) == (job.attempt, job.fence)
            good = current and job.state in RESERVED
        if not good:
            raise StaleFence(change.job, change.attempt, change.fence)

    def apply(self, change: Change) -> None:
        match change:
            case JobAdded(job, spec):
                self.jobs[job.id] = copy.copy(job)
                self.specs[job.id] = spec
            case JobWaits(job=job_id, state=state) | JobEnded(job=job_id, state=state):
                self.jobs[job_id].state = state
            case JobDispatched():
                job = self.jobs[change.job]
                job.state, job.started_at = "dispatched", None
                job.attempt, job.fence = change.attempt, change.fence
                self.repositories[change.repo] = structs.replace(
                    self.repositories[change.repo],
                    fence=change.fence,
                    last_dispatch=change.at,
                )
            case JobRan():
                job = self.jobs[change.job]
                job.state, job.started_at = "running", change.at
            case JobRequeued():
                job = self.jobs[change.job]
                place = change.queued_at
                job.state = change.state
                job.queued_at = change.at if place is None else place
                job.retry_at, job.refused = change.retry_at, change.refused
                if change.verify is not None:
                    spec = self.specs[change.job]
                    spec = structs.replace(spec, verify=change.verify)
                    self.specs[change.job] = spec
                    go_to_step(job, change.verify)
            case JobDelegated():
                self.children.setdefault(change.job, change.child)
            case Quarantined(left):
                self.quarantined[left.job] = left
            case SetAside(poison):
                self.poisoned[poison.repo, poison.job] = poison
            case TakenBack(repo):
                for key in [key for key in self.poisoned if key[0] == repo]:
                    if change.job in (None, key[1]):
                        del self.poisoned[key]
            case QuarantineEnded(job_id):
                self.quarantined.pop(job_id, None)
            case JobAnswered(job_id):
                self.jobs[job_id].state = change.state
                self.specs[job_id] = answered(self.specs[job_id], change)
            case JobApproved(job_id):
                self.jobs[job_id].state = change.state
                self.specs[job_id] = approved(self.specs[job_id], change)
            case EffectsRefused(job_id, refused):
                self.refused_effects[job_id] = refused
            case JobHeld(job_id, since):
                self.jobs[job_id].held_at = since
            case JobIsolated(job_id, claims, isolation):
                self.jobs[job_id].claims = claims
                self.jobs[job_id].isolatable = False
                spec = self.specs[job_id]
                self.specs[job_id] = with_isolation(spec, isolation)
            case JobRedirected(job_id, choice):
                direct(self.jobs[job_id], choice)
                self.specs[job_id] = redirected(self.specs[job_id], choice)
            case JobEdited(job_id, edit):
                edit.apply(self.jobs[job_id])
                spec = self.specs[job_id]
                budgets = edit.budgets(spec.budgets)
                self.specs[job_id] = structs.replace(spec, budgets=budgets)
            case PauseBegan(pause):
                self.pauses[pause.scope] = pause
            case PauseEnded(scope):
                self.pauses.pop(scope, None)
            case HookChanged(hook):
                self.hooks[hook.name] = hook
            case ItemMarked(mark):
                self.marks[mark.item] = mark.after(self.marks.get(mark.item))
            case AccountChanged(account):
                self.accounts[account.provider] = account
            case PolicySet(policy):
                self.policy = policy
            case RepositoryAdded(repository):
                self.repositories[repository.id] = repository
            case RepositoryChanged(repository):
                held = self.repositories[repository.id]
                if repository.removed_at is not None:
                    self.looks.pop(repository.id, None)
                    self.trusted.pop(repository.id, None)
                    self.pauses.pop(repository_scope(repository.id), None)
                    for key in [k for k in self.poisoned if k[0] == repository.id]:
                        del self.poisoned[key]
                    for left in tuple(self.quarantined.values()):
                        if left.repo == repository.id:
                            del self.quarantined[left.job]
                self.repositories[repository.id] = structs.replace(
                    repository, fence=held.fence, last_dispatch=held.last_dispatch
                )
                if change.moved is not None:
                    self._move_jobs(repository.id, change.moved)
            case WorktreeChanged(worktree):
                self.worktrees[worktree.id] = worktree
            case LookSaved(look):
                if self.repositories[look.repo].removed_at is None:
                    self.looks[look.repo] = look
            case ScheduleSaved(schedule, name, body):
                self.schedules[schedule] = (schedule, name, body)
            case OccurrenceSaved(occurrence):
                self.occurrences[occurrence.id] = occurrence
                self._trim_occurrences(occurrence.schedule)
            case ScheduleRemoved(schedule):
                self.schedules.pop(schedule, None)
                for told in tuple(self.occurrences.values()):
                    if told.schedule == schedule:
                        del self.occurrences[told.id]
            case TrustSaved(repo, body):
                self.trusted[repo] = (body, None)
            case TrustDiffers(repo, differs):
                if repo in self.trusted:
                    self.trusted[repo] = (self.trusted[repo][0], differs)
            case TrustRemoved(repo):
                self.trusted.pop(repo, None)
            case ControllerSaved(controller, name, state, body):
                self.controllers[controller] = (controller, name, state, body)
            case WakeSaved(wake, controller, number, state, body):
                self.wakes[wake] = (controller, number, state, body)
                self._trim_wakes(controller)
            case ControllerRemoved(controller):
                del self.controllers[controller]
                for wake in [k for k, w in self.wakes.items() if w[0] == controller]:
                    del self.wakes[wake]
            case EpicSaved(run, active, body, request):
                known = self.epics.get(run)
                request = request if known is None else known[1]
                self.epics[run] = (active, request, body)
            case EpicsForgotten(kept):
                over = sorted(key for key, row in self.epics.items() if not row[0])
                for run in over[: max(0, len(over) - kept)]:
                    del self.epics[run]
            case WorkflowAdded(workflow, _, state, definition, body, request):
                self.workflows[workflow] = (state, definition, body)
                if request is not None:
                    assert request not in self.workflow_requests, request
                    self.workflow_requests[request] = workflow
            case WorkflowSaved(workflow, state, body):
                self.workflows[workflow] = (state, self.workflows[workflow][1], body)
            case StepSaved(workflow, step, number, _, body):
                self.workflow_steps[workflow, step] = (number, body)
            case WorkflowsForgotten(kept):
                self._forget_workflows(kept)
            case Noted() | SettingsChanged() | AttemptUsed():
                pass
            case (
                JobsForgotten() | EventsForgotten() | ClassVisited() | CleanRunChanged()
            ):
                pass
        self.keep(change)
        if change.event is None:
            return
        number = len(self.events) + 1
        self.events.append(structs.replace(change.event, seq=number))

    def _forget_workflows(self, kept: int) -> None:
        ended = [key for key, row in self.workflows.items() if row[0] not in ACTIVE]
        ended.sort(key=lambda key: (_ended_at(self.workflows[key][2]), key))
        for old in ended[: max(0, len(ended) - kept)]:
            del self.workflows[old]
            for request, of in tuple(self.workflow_requests.items()):
                if of == old:
                    del self.workflow_requests[request]
            for key in [key for key in self.workflow_steps if key[0] == old]:
                del self.workflow_steps[key]

    def _trim_wakes(self, controller: str) -> None:
        kept = [key for key, wake in self.wakes.items() if wake[0] == controller]
        kept.sort(key=lambda key: self.wakes[key][1], reverse=True)
        for key in kept[MAX_WAKES:]:
            del self.wakes[key]

    def _trim_occurrences(self, schedule: str) -> None:
        kept = [one for one in self.occurrences.values() if one.schedule == schedule]
        kept.sort(key=lambda one: one.due, reverse=True)
        for one in kept[MAX_OCCURRENCES:]:
            del self.occurrences[one.id]

    def _move_jobs(self, repo: str, moved: Relocation) -> None:
        for job in self.jobs.values():
            if job.repo == repo and job.state not in TERMINAL:
                job.claims = moved.claims(job.claims)
                self.specs[job.id] = moved.spec(self.specs[job.id])
        for left in tuple(self.quarantined.values()):
            if left.repo == repo:
                claims = moved.claims(left.claims)
                self.quarantined[left.job] = structs.replace(left, claims=claims)


def _ended_at(body: bytes) -> float:
    try:
        return header_of(body).ended or math.inf
    except UnreadableWorkflow:
        return math.inf
