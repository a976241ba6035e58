"""Runs of EPICs by a service: what they are asked to be, kept and shown as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct, structs

from forge_actors.domain.epic.views import EpicView
from forge_actors.domain.epic_changes import EpicSaved
from forge_actors.domain.errors import ForgeError
from forge_actors.domain.events import Event
from forge_actors.domain.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from forge_actors.domain.epic.views import ChildView

#: Runs that have not ended, and those that have and are kept.
MAX_ACTIVE, KEPT = 100, 500

#: `waiting`: for the repository, which somebody has, or for the end of a limit.
RunState: TypeAlias = Literal["waiting", "running", "ended"]


class EpicRequest(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """An EPIC to be worked through by a service."""

    #: The URL of an issue, or the path of a plan on the service's machine.
    epic: str
    #: Name or path of the repository.
    repo: str
    max_parallel: int | None = None
    #: For the phases that take one, in place of what the settings say.
    agent: str | None = None
    #: Take over claims that an earlier run left open.
    resume: bool = False
    #: The same, and move a record aside that cannot be read.
    force: bool = False
    #: Go on with other settings than the work began with.
    accept_config_change: bool = False
    #: The same id again begins nothing more.
    request_id: str | None = None


class EpicRun(Struct, frozen=True):
    """One run: kept until `KEPT` newer ones have ended."""

    id: str
    request: EpicRequest
    #: Id of the repository.
    repo: str
    #: Who began it.
    origin: str
    #: Seconds since 1970.
    made: float
    state: RunState = "running"
    #: What it waits for, or why it has ended in another way than by itself.
    why: str | None = None
    #: How it ended; None while it goes on, and if it could not begin.
    reason: str | None = None
    ended: float | None = None
    #: How many of its schedulers there were.
    invocations: int = 0
    #: The graph and its issues as they were seen last.
    last: EpicView | None = None

    @property
    def failed(self) -> bool:
        """Whether it has ended before its time, and nobody wanted that."""
        return self.state == "ended" and self.reason in (None, "degraded")


class EpicRunView(Struct, frozen=True, omit_defaults=False):
    """A run as it is shown."""

    id: str
    epic: str
    #: Name of the repository; its id if it was removed.
    repo: str
    state: RunState
    why: str | None
    reason: str | None
    origin: str
    made_at: str
    ended_at: str | None
    #: The graph and its issues as they were seen last; in a list without its issues.
    view: EpicView | None = None


class UnreadableEpic(ForgeError):
    """What is stored of a run of an EPIC cannot be used."""

    code = "EPIC_UNREADABLE"


_run = msgspec.json.Decoder(EpicRun)


def loaded(body: bytes) -> EpicRun:
    """A run as it was saved.

    Raises:
        UnreadableEpic: it cannot be used.
    """
    try:
        return _run.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableEpic(f"what is stored of it: {error}") from None


def unreadable(key: str, why: str) -> EpicRun:
    """What stands for a run of which nothing can be read."""
    return EpicRun(key, EpicRequest("", ""), "", "", 0.0, "ended", why)


def set_aside(key: str, body: bytes) -> EpicSaved:
    """The change by which a run that cannot be read waits for somebody."""
    return EpicSaved(key, False, body, request=None, target="", needs=True)


def shown(
    run: EpicRun, repo: str, view: EpicView | None = None, *, brief: bool = False
) -> EpicRunView:
    """A run as readers see it; `view` is of a run that goes on, `repo` a name."""
    seen = run.last if view is None else view
    if brief and seen is not None:
        seen = structs.replace(seen, children=())
    return EpicRunView(
        id=run.id,
        epic=run.request.epic,
        repo=repo,
        state=run.state,
        why=run.why,
        reason=run.reason,
        origin=run.origin,
        made_at=timestamp(run.made),
        ended_at=None if run.ended is None else timestamp(run.ended),
        view=seen,
    )


def attention(run: EpicRun) -> list[ChildView]:
    """The issues that go on no more until a person has looked."""
    children = () if run.last is None else run.last.children
    return [child for child in children if child.state == "held" and _is_stuck(child)]


def _is_stuck(child: ChildView) -> bool:
    # Work of which nothing was saved is begun anew by the next run; only of what is not
    # understood the claim stays open.
    uncertain = "uncertain" in child.reason and child.closed is None
    return uncertain or child.phase in ("blocked", "failed")


def with_jobs(view: EpicView, jobs: Mapping[int, str]) -> EpicView:
    """The same, each issue with the job that works on it, or did last."""
    children = (
        structs.replace(child, job=jobs.get(child.number, child.job))
        for child in view.children
    )
    return structs.replace(view, children=tuple(children))


def saved(run: EpicRun, event: Event | None = None) -> EpicSaved:
    """The change to what it is now."""
    return EpicSaved(
        epic=run.id,
        active=run.state != "ended",
        body=msgspec.json.encode(run),
        request=run.request.request_id,
        target=f"{run.repo} {run.request.epic}",
        needs=run.failed or bool(attention(run)),
        event=event,
    )


def epic_event(kind: str, run: EpicRun, now: float, **data: object) -> Event:
    """Something became of a run."""
    about = {"epic": run.id, "target": run.request.epic, **data}
    told = {name: value for name, value in about.items() if value is not None}
    return Event(kind, now, repo=run.repo, data=told)
