"""An EPIC and its issues as people, pages and programs are shown them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from forge_actors.domain.epic.plan_file import PLAN_HOST
from forge_actors.domain.epic.records import SETTLED
from forge_actors.domain.epic.verdicts import KINDS, cycles
from forge_actors.domain.harmless import clean
from forge_actors.domain.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from forge_actors.domain.epic.graph import ChildNode, Snapshot
    from forge_actors.domain.epic.namespace import Namespace
    from forge_actors.domain.epic.records import Scheduler
    from forge_actors.domain.epic.verdicts import Verdict
    from forge_actors.domain.github.places import Place

#: Characters of a title.
MAX_TITLE = 200
#: Of an issue whose work has come to a good end, and waits for people.
_GOOD = ("ready_for_merge", "done")


class ChildView(Struct, frozen=True):
    """One issue."""

    number: int
    title: str
    #: Its verdict, or `running` with a worker of this run, or `done` by one.
    state: str
    reason: str
    #: Numbers of the issues of the same repository that it waits for, open or not.
    blocked_by: tuple[int, ...] = ()
    #: How far its worker is, or has come.
    phase: str | None = None
    detail: str | None = None
    #: Of its last claim.
    generation: int | None = None
    #: How that was closed; None while it is open.
    closed: str | None = None
    pid: int | None = None
    log: str | None = None
    branch: str | None = None
    #: The job that works on it, in a service.
    job: str | None = None


class EpicView(Struct, frozen=True):
    """An EPIC, and what a run of it is at."""

    repository: str
    number: int
    title: str
    #: `running`; `finished` with an end reason; `killed` without one; `planned` if it
    #: was only looked at.
    state: str
    children: tuple[ChildView, ...]
    #: How many of these are in each state.
    counts: dict[str, int]
    invocation: str | None = None
    admission: str | None = None
    reason: str | None = None
    end_reason: str | None = None
    started_at: str | None = None
    ended_at: str | None = None
    observed_at: str | None = None
    #: How many issues the last snapshot of that run had with each verdict.
    verdicts: dict[str, int] | None = None
    max_parallel: int | None = None
    #: Circles of issues that wait for each other.
    cycles: tuple[tuple[int, ...], ...] = ()


def child_view(
    node: ChildNode, verdict: Verdict, kept: Namespace | None, *, running: bool = False
) -> ChildView:
    """One child of a snapshot. `kept` is what there is of it on the disk; `running`:
    this run has a worker for it."""
    view = ChildView(node.number, "", "", "") if kept is None else kept_view(kept)
    state = "done" if verdict.kind == "held" and view.state == "done" else verdict.kind
    blocked = (each.at for each in node.blockers if each.at.place == node.place)
    return structs.replace(
        view,
        title=title(node.title),
        state="running" if running else state,
        reason=verdict.reason,
        blocked_by=tuple(at.number for at in blocked),
    )


def kept_view(kept: Namespace, *, busy: bool = False) -> ChildView:
    """What the disk alone says of an issue; `busy`: somebody has its lock."""
    state = None if kept.saved is None else kept.saved.state
    claim, closed = kept.latest, None
    view = ChildView(kept.issue, "", "held", "no worker has it")
    if state is not None:
        view = structs.replace(
            view,
            reason="the next run goes on with it",
            phase=state.phase,
            detail=state.detail or None,
            branch=state.branch,
        )
        if state.phase in SETTLED:
            view = structs.replace(view, reason=f"settled:{state.phase}")
        if state.phase in _GOOD:
            view = structs.replace(view, state="done")
    if claim is not None:
        closed, worker = claim.closed, claim.worker
        view = structs.replace(
            view,
            generation=claim.generation,
            closed=None if closed is None else closed.classification,
            pid=None if worker is None else worker.pid,
            log=None if worker is None else worker.log,
        )
    if closed is not None and closed.classification == "abandoned":
        view = structs.replace(view, reason=closed.detail)
    if kept.problem is not None:
        view = structs.replace(view, reason=f"uncertain: {kept.problem}")
    if busy:
        view = structs.replace(view, state="running", reason="a worker has it")
    return view


def title(text: str) -> str:
    """The title of an issue as it may be shown anywhere."""
    return clean(redact(text))[:MAX_TITLE]


def told(place: Place) -> str:
    """A repository as people call it, or the plan that stands for one."""
    return f"plan {place.name}" if place.host == PLAN_HOST else str(place)


def epic_view(
    snapshot: Snapshot,
    children: Iterable[ChildView],
    record: Scheduler | None,
    *,
    satisfied_by: Collection[str] = (),
) -> EpicView:
    """A graph that was read, and the run that has read it, if one has."""
    shown = tuple(children)
    view = EpicView(
        repository=told(snapshot.place),
        number=snapshot.epic.number,
        title=title(snapshot.epic.title),
        state="planned",
        children=shown,
        counts=counts_of(shown),
        observed_at=snapshot.observed_at,
        cycles=cycles(snapshot, satisfied_by=satisfied_by),
    )
    return view if record is None else _with_run(view, record, alive=True)


def recorded_view(
    record: Scheduler,
    children: Iterable[ChildView],
    *,
    alive: bool,
    plan: bool = False,
) -> EpicView:
    """What the files alone say, of the issues that a worker had; `alive`: its
    scheduler runs."""
    shown, place = tuple(children), record.repository
    summary = record.last_snapshot
    view = EpicView(
        repository=f"{'plan ' if plan else f'{place.owner}/'}{place.name}",
        number=record.epic.number,
        title="",
        state="planned",
        children=shown,
        counts=counts_of(shown),
        observed_at=None if summary is None else summary.observed_at,
    )
    return _with_run(view, record, alive=alive)


def _with_run(view: EpicView, record: Scheduler, *, alive: bool) -> EpicView:
    run, summary = record.invocation, record.last_snapshot
    seen = None if summary is None else {kind: getattr(summary, kind) for kind in KINDS}
    state = "finished"
    if run.ended_at is None:
        state = "running" if alive else "killed"
    return structs.replace(
        view,
        state=state,
        invocation=run.id,
        admission=record.admission.status,
        reason=record.admission.reason,
        end_reason=run.end_reason,
        started_at=run.started_at,
        ended_at=run.ended_at,
        verdicts=seen,
        max_parallel=record.config.max_parallel,
    )


def counts_of(children: Iterable[ChildView]) -> dict[str, int]:
    """How many issues there are in each state that one is in."""
    return dict(Counter(child.state for child in children))
