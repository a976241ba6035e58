"""EPICs as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import clean, table, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    elif state == "running" and view.get("reason"):
        state += f", admission {view['admission']}: {view['reason']}"
    busy = [each["number"] for each in view["children"] if each["state"] == "running"]
    if busy and view["state"] != "running":
        names = ", ".join(f"#{number}" for number in busy)
        state += f"; workers go on with {names}, and until they end no other run begins"
    return state


def children(view: dict[str, Any]) -> Iterator[str]:
    rows = [
        (
            *(f"#{child['number']}", child["state"], child["phase"] or ""),
            " ".join(f"#{number}" for number in child["blocked_by"]),
            *(child["title"], _note(child)),
        )
        for child in view["children"]
    ]
    yield from table(CHILDREN, rows, columns=terminal_width(), flexible=[3, 4, 5])


def counts(found: dict[str, int]) -> str:
    """How many issues are in which state."""
    known = [each for each in _STATES if found.get(each)]
    return ", ".join(f"{found[each]} {each}" for each in known) or "none"


def starts(view: dict[str, Any], most: int) -> Iterator[str]:
    """What a run would begin now."""
    ready = [each["number"] for each in view["children"] if each["state"] == "ready"]
    begun = " ".join(f"#{number}" for number in ready[:most]) or "nothing"
    later = len(ready) - most
    more = f", and then {later} more" if later > 0 else ""
    yield f"would begin now: {begun}{more}"


def _note(child: dict[str, Any]) -> str:
    if child["state"] == "running":
        return f"pid {child['pid']}" if child["pid"] else ""
    told = "" if child["reason"] == child["state"] else child["reason"]
    if child["detail"]:
        told = f"{told}: {child['detail']}" if told else child["detail"]
    return str(told)
