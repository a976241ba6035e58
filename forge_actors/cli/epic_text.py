"""EPICs as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import clean, table, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Of the runs of a service.
RUNS = ("RUN", "REPO", "STATE", "ISSUES", "EPIC", "NOTE")
CHILDREN = ("ISSUE", "STATE", "PHASE", "WAITS FOR", "TITLE", "NOTE")
#: In the order in which they are told.
_STATES = (
    *("running", "ready", "blocked", "held", "owned"),
    *("done", "closed", "unsupported"),
)


def detail(view: dict[str, Any]) -> Iterator[str]:
    """An EPIC and its issues."""
    names = f"#{view['number']} of {view['repository']}  {view['title']}"
    yield clean(f"epic      {names}").rstrip()
    yield f"state     {_state(view)}"
    if view.get("invocation"):
        yield f"run       {view['invocation']} since {view['started_at']}"
    if view.get("ended_at"):
        yield f"ended     {view['ended_at']}"
    if view.get("observed_at"):
        seen = view.get("verdicts")
        told = "" if seen is None else f": {counts(seen)}"
        yield f"snapshot  {view['observed_at']}{told}"
    yield f"issues    {counts(view['counts'])}"
    for circle in view.get("cycles") or ():
        yield f"circle    {' -> '.join(f'#{number}' for number in circle)}"
    if view["children"]:
        yield ""
        yield from children(view)


def _state(view: dict[str, Any]) -> str:
    state: str = view["state"]
    if view.get("end_reason"):
        state += f": {view['end_reason']}"
        if view["end_reason"] == "degraded":
            state += f" ({view['reason']})"
    elif state == "running" and view.get("reason"):
        state += f", admission {view['admission']}: {view['reason']}"
    busy = [each["number"] for each in view["children"] if each["state"] == "running"]
    if busy and view["state"] != "running":
        names = ", ".join(f"#{number}" for number in busy)
        state += f"; workers go on with {names}, and until they end no other run begins"
    return state


def children(view: dict[str, Any]) -> Iterator[str]:
    jobs = any(child.get("job") for child in view["children"])
    rows = [
        (
            *(f"#{child['number']}", child["state"], child["phase"] or ""),
            *((child["job"] or "",) if jobs else ()),
            " ".join(f"#{number}" for number in child["blocked_by"]),
            *(child["title"], _note(child)),
        )
        for child in view["children"]
    ]
    names = (*CHILDREN[:3], "JOB", *CHILDREN[3:]) if jobs else CHILDREN
    last = len(names)
    flexible = [last - 3, last - 2, last - 1]
    yield from table(names, rows, columns=terminal_width(), flexible=flexible)


def listing(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The runs of a service."""
    rows = []
    for run in runs:
        view = run["view"] or {}
        told = counts(view["counts"]) if view else ""
        how = run["reason"] or run["state"]
        rows.append(
            (
                *(run["id"], run["repo"], how, told),
                *(view.get("title") or run["epic"], run["why"] or ""),
            )
        )
    yield from table(RUNS, rows, columns=terminal_width(), flexible=[3, 4, 5])


def run_detail(run: dict[str, Any]) -> Iterator[str]:
    """A run of a service, its EPIC and its issues."""
    how = run["state"] if run["reason"] is None else f"{run['state']}: {run['reason']}"
    yield f"run       {run['id']} {how}"
    if run["why"]:
        yield f"why       {run['why']}"
    yield f"begun     {run['made_at']} by {run['origin']}, in {run['repo']}"
    if run["ended_at"]:
        yield f"ended     {run['ended_at']}"
    if run["view"] is None:
        yield f"epic      {run['epic']}"
    else:
        yield from detail({**run["view"], "invocation": None, "ended_at": None})


def counts(found: dict[str, int]) -> str:
    """How many issues are in which state."""
    known = [each for each in _STATES if found.get(each)]
    return ", ".join(f"{found[each]} {each}" for each in known) or "none"


def starts(view: dict[str, Any], most: int) -> Iterator[str]:
    """What a run would begin now."""
    ready = [each["number"] for each in view["children"] if each["state"] == "ready"]
    if view["admission"] == "degraded":
        ready = []
    begun = " ".join(f"#{number}" for number in ready[:most]) or "nothing"
    later = len(ready) - most
    more = f", and then {later} more" if later > 0 else ""
    yield f"would begin now: {begun}{more}"


def _note(child: dict[str, Any]) -> str:
    if child["state"] == "running":
        return f"pid {child['pid']}" if child["pid"] else ""
    if child["state"] == "done" and child["branch"]:
        return f"on {child['branch']}"
    told = "" if child["reason"] == child["state"] else child["reason"]
    if child["detail"]:
        told = f"{told}: {child['detail']}" if told else child["detail"]
    return str(told)
