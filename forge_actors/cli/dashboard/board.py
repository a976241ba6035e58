"""The board: what the dashboard knows of the jobs and of the service.

It is loaded once and follows the events from there. An event tells the state of a job
but not all of it, so a job that changed is stale until somebody looks at it anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs, to_builtins

from forge_actors.cli.job_text import title
from forge_actors.cli.text import clean
from forge_actors.domain.jobs import RESERVED, TERMINAL, WAITING, JobError, JobView
from forge_actors.domain.requests import convert

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from forge_actors.domain.events import EventView
    from forge_actors.domain.inbox import Inbox

#: Jobs that ended, and that wait, which are known at most: the newest.
MAX_FINISHED, MAX_WAITING = 1000, 5000
ATTENTION, RUNNING, PENDING, FINISHED = "attention", "running", "waiting", "finished"
SECTIONS = (ATTENTION, RUNNING, PENDING, FINISHED)
#: Events after which the state of the whole service is to be asked for.
_OF_SERVICE = frozenset(
    {
        "paused",
        "resumed",
        "limits",
        "settings_changed",
        "pressure_began",
        "pressure_ended",
        "drain_began",
        "drain_ended",
        "provider_closed",
        "provider_opened",
        "disk_room",
        "runtime_ready",
    }
)
#: Those after which other things may need a person.
_OF_INBOX = frozenset(
    {
        "inbox_dismissed",
        "provider_closed",
        "provider_opened",
        "job_human_attention_required",
        "job_waiting_for_approval",
        "job_quarantined",
        "job_quarantine_ended",
        "repository_set_aside",
        "repository_taken_back",
        "job_set_aside",
        "worktree_kept",
    }
)
#: Items of the inbox that are about a job, and not about what it left or met.
_OF_JOBS = ("job", "question", "approval", "effect")
#: States after which a job may be in the inbox no more.
_ANSWERED = "waiting_for_approval"


class Heading(NamedTuple):
    """The line above the jobs of a section."""

    section: str
    shown: int
    known: int


Row = Heading | JobView


class Board:
    """All of it. Whoever changes it does so in one task."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobView] = {}
        self.status: dict[str, Any] = {}
        #: The jobs that need a person, and how many things do.
        self.attention: set[str] = set()
        self.inbox_items = 0
        #: Jobs of which an event told more than is known.
        self.stale: set[str] = set()
        #: Whether there are jobs that are not known yet.
        self.news = False
        self.status_stale = self.inbox_stale = False
        self._texts: dict[str, str] = {}

    # -- what is told ------------------------------------------------------------------

    def begin(self, views: Iterable[JobView]) -> None:
        """Everything anew."""
        self.jobs = {}
        self._texts = {}
        self.stale = set()
        self.news = False
        self.add(views)

    def add(self, views: Iterable[JobView]) -> None:
        """Jobs as they are now."""
        for view in views:
            self.jobs[view.id] = view
            self.stale.discard(view.id)
            self._texts.pop(view.id, None)
        self._forget()

    def gone(self, job: str) -> None:
        """A job that is known no more."""
        self.jobs.pop(job, None)
        self.stale.discard(job)
        self._texts.pop(job, None)

    def set_inbox(self, inbox: Inbox) -> None:
        self.inbox_items = inbox.count
        self.attention = {
            item.job
            for item in inbox.items
            if item.kind in _OF_JOBS and item.job is not None
        }
        self.inbox_stale = False

    def apply(self, event: EventView) -> None:
        """Take the next event."""
        if event.kind in _OF_SERVICE:
            self.status_stale = True
        if event.kind in _OF_INBOX:
            self.inbox_stale = True
        if event.job is None or not event.kind.startswith("job_"):
            return
        known = self.jobs.get(event.job)
        if known is None:
            self.news = True
            return
        self.stale.add(event.job)
        if known.state == _ANSWERED:
            self.inbox_stale = True
        word = event.kind.removeprefix("job_")
        if word in RESERVED | TERMINAL | WAITING:
            self.status_stale = True
            self.jobs[event.job] = _moved(known, word, event)
        elif word == "redirected":
            self._texts.pop(event.job, None)

    def newest(self) -> str | None:
        """The newest job that is known."""
        return max(self.jobs, default=None)

    def _forget(self) -> None:
        """Let the oldest go of those that are too many."""
        for states, most in ((TERMINAL, MAX_FINISHED), (WAITING, MAX_WAITING)):
            ids = [job.id for job in self.jobs.values() if job.state in states]
            if len(ids) > most:
                for job in sorted(set(ids) - self.attention)[: len(ids) - most]:
                    self.gone(job)

    # -- what is shown -----------------------------------------------------------------

    def section(self, job: JobView) -> str:
        if job.state == _ANSWERED or job.id in self.attention:
            return ATTENTION
        if job.state in RESERVED:
            return RUNNING
        return FINISHED if job.state in TERMINAL else PENDING

    def counts(self) -> dict[str, int]:
        """How many jobs each section has, those included that are not known."""
        told: dict[str, int] = self.status.get("counts") or {}
        counts = dict.fromkeys(SECTIONS, 0)
        for state, number in told.items():
            counts[_section_of(state)] += number
        asking = sum(
            1
            for job in self.attention
            if (known := self.jobs.get(job)) is not None and known.state in TERMINAL
        )
        counts[ATTENTION] += asking
        counts[FINISHED] = max(0, counts[FINISHED] - asking)
        return counts

    def rows(self, words: Sequence[str] = ()) -> list[Row]:
        """The jobs that have all of the words, each section below its heading."""
        by_section: dict[str, list[JobView]] = {name: [] for name in SECTIONS}
        for job in self.jobs.values():
            if not words or self._has(job, words):
                by_section[self.section(job)].append(job)
        by_section[RUNNING].sort(key=lambda job: (job.started_at or "", job.id))
        by_section[PENDING].sort(key=lambda job: (job.priority, job.id))
        by_section[ATTENTION].sort(key=lambda job: job.id)
        by_section[FINISHED].sort(
            key=lambda job: (job.finished_at or "", job.id), reverse=True
        )
        counts = self.counts()
        # The counts may be a moment older or newer: they tell only of those let go.
        full = {PENDING: MAX_WAITING, FINISHED: MAX_FINISHED - len(self.attention)}
        rows: list[Row] = []
        for name, jobs in by_section.items():
            if jobs:
                all_known = words or len(jobs) < full.get(name, len(jobs) + 1)
                known = len(jobs) if all_known else max(len(jobs), counts[name])
                rows += [Heading(name, len(jobs), known), *jobs]
        return rows

    def _has(self, job: JobView, words: Sequence[str]) -> bool:
        text = self._texts.get(job.id)
        if text is None:
            text = self._texts[job.id] = _searched(job)
        state = f"{job.state} {self.section(job)}"
        return all(word in text or word in state for word in words)


def _section_of(state: str) -> str:
    if state == _ANSWERED:
        return ATTENTION
    if state in RESERVED:
        return RUNNING
    return FINISHED if state in TERMINAL else PENDING


def _searched(job: JobView) -> str:
    parts = (job.id, shown_title(job), job.repo, job.kind, job.provider or "")
    return " ".join((*parts, job.priority, *job.labels)).casefold()


def shown_title(job: JobView) -> str:
    """What a job is called, harmless for a terminal."""
    return clean(title({"name": job.name, "argv": to_builtins(job.argv)}))


def _moved(job: JobView, state: str, event: EventView) -> JobView:
    """A job as an event says it is now."""
    data = event.data
    changes: dict[str, Any] = {"state": state, "waiting": None, "paused": False}
    if isinstance(data.get("attempt"), int):
        changes["attempt"] = data["attempt"]
    if isinstance(data.get("error"), dict):
        changes["error"] = convert(data["error"], JobError)
    if state == "dispatched":
        changes |= {"started_at": None, "error": None}
    elif state == "running":
        changes["started_at"] = event.at
    elif state in TERMINAL:
        changes["finished_at"] = event.at
    else:
        changes["queued_at"] = job.queued_at if "reason" in data else event.at
        if state != "queued":
            kind = state.removeprefix("waiting_for_")
            changes["waiting"] = {"kind": kind, "since": event.at}
    return structs.replace(job, **changes)
