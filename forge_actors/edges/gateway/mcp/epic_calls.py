"""The tool that is about EPICs, and its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct, to_builtins

from forge_actors.domain.epic.runs import EpicRequest
from forge_actors.domain.errors import InvalidInput
from forge_actors.edges.gateway.mcp.answers import fitting
from forge_actors.edges.gateway.mcp.arguments import Repository

if TYPE_CHECKING:
    from forge_actors.domain.epic.runs import EpicRunView
    from forge_actors.domain.epic.views import EpicView
    from forge_actors.edges.gateway.mcp.answers import Json
    from forge_actors.edges.gateway.mcp.calls import Call

#: Runs that one answer lists, and issues of one.
MAX_RUNS, MAX_ISSUES = 50, 200
#: Issues in which there is something to see come first.
_FIRST = ("running", "held", "owned", "ready", "blocked")
#: What is told of an issue; the rest is in the log of its job.
_ISSUE = (
    *("number", "title", "state", "reason", "phase", "detail", "blocked_by"),
    *("job", "branch"),
)


class Epics(Struct, forbid_unknown_fields=True):
    action: Annotated[
        Literal["list", "show", "run", "stop"],
        Meta(
            description="`run` begins to work through an EPIC; `stop` lets its workers"
            " come to their next boundary, and begins nothing more of it."
        ),
    ] = "list"
    run: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        Meta(description="With `show` and `stop`: the id of the run."),
    ] = None
    epic: Annotated[
        Annotated[str, Meta(min_length=1, max_length=4096)] | None,
        Meta(
            description="With `run`: the URL of a GitHub issue with sub-issues, or the"
            " absolute path of a plan."
        ),
    ] = None
    repo: Annotated[
        Repository | None,
        Meta(
            description="With `run`: where its issues are worked on; by default where"
            " you were started."
        ),
    ] = None
    max_parallel: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(description="With `run`: at most so many issues at once."),
    ] = None
    request_id: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | None,
        Meta(description="With `run`: the same id again begins nothing more."),
    ] = None


async def epics(call: Call, wanted: Epics) -> Json:
    control = call.control
    if wanted.action == "list":
        runs = await control.epics(limit=MAX_RUNS)
        return {"epics": fitting([_row(run) for run in runs])}
    if wanted.action == "run":
        return {"epic": _row(await _begin(call, wanted))}
    if wanted.run is None:
        raise InvalidInput("run", f"is missing: which run is to {wanted.action}")
    if wanted.action == "stop":
        await control.stop_epic(wanted.run, "drain")
    run = await control.epic(wanted.run)
    children = () if run.view is None else run.view.children
    ordered = sorted(children, key=lambda child: child.state not in _FIRST)
    rows = [
        {field: to_builtins(getattr(child, field)) for field in _ISSUE}
        for child in ordered[:MAX_ISSUES]
    ]
    return {"epic": _row(run), "issues": fitting(rows), "total": len(children)}


async def _begin(call: Call, wanted: Epics) -> EpicRunView:
    if wanted.epic is None:
        raise InvalidInput("epic", "is missing: which EPIC is to be worked through")
    repo = wanted.repo or call.caller.folder
    if repo is None:
        raise InvalidInput("repo", "is missing: give the name of a repository")
    request = EpicRequest(
        epic=wanted.epic,
        repo=repo,
        max_parallel=wanted.max_parallel,
        request_id=wanted.request_id,
    )
    return await call.control.run_epic(request, origin=call.caller.origin)


def _row(run: EpicRunView) -> Json:
    fields = ("id", "epic", "repo", "state", "why", "reason", "made_at", "ended_at")
    row: Json = {field: getattr(run, field) for field in fields}
    if run.view is not None:
        row |= _seen(run.view)
    return row


def _seen(view: EpicView) -> Json:
    return {
        "title": view.title,
        "counts": view.counts,
        "observed_at": view.observed_at,
        "degraded": view.reason if view.admission == "degraded" else None,
    }
