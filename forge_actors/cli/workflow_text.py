"""Workflows as people read them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import table, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Steps of each kind that a report names, and of those that took longest.
MAX_REPORTED, LONGEST = 50, 5
LIST = ("WORKFLOW", "NAME", "KIND", "STATE", "STEPS", "NOTE")
STEPS = ("STEP", "STATE", "JOB", "TRIES", "AFTER", "NOTE")
#: In the order in which they are told.
_STATES = (
    *("succeeded", "failed", "skipped", "cancelled"),
    *("running", "asking", "waiting"),
)


def listing(views: Sequence[dict[str, Any]]) -> Iterator[str]:
    rows = [
        (
            *(view["id"], view["name"], view["kind"], view["state"]),
            *(counts(view), view["why"] or ""),
        )
        for view in views
    ]
    yield from table(LIST, rows, columns=terminal_width(), flexible=[5])


def detail(view: dict[str, Any]) -> Iterator[str]:
    yield f"workflow  {view['id']}"
    yield f"name      {view['name']}"
    yield f"kind      {view['kind']}"
    yield f"state     {view['state']}" + (f": {view['why']}" if view["why"] else "")
    yield f"steps     {counts(view)}"
    if view.get("goal"):
        yield f"rounds    {rounds(view['goal'])}"
    yield f"begun     {view['made_at']} by {view['origin']}"
    if view["ended_at"]:
        yield f"ended     {view['ended_at']}"
    yield f"digest    {view['digest'][:16]}"
    if view.get("source"):
        yield f"file      {view['source']}"
    yield ""
    rows = [
        (
            *(step["name"], step["state"], step["job"] or "", str(step["tries"])),
            *(" ".join(step["after"]), _note(step)),
        )
        for step in view["steps"]
    ]
    yield from table(STEPS, rows, columns=terminal_width(), flexible=[4, 5])


def rounds(goal: dict[str, Any]) -> str:
    """How far a goal is, and what it has used."""
    told = f"{goal['round']} of {goal['rounds']}"
    if goal["used_tokens"] or goal["tokens"] is not None:
        most = "" if goal["tokens"] is None else f" of {goal['tokens']:,}"
        told += f", {goal['used_tokens']:,}{most} tokens"
    if goal["used_cost"] or goal["cost"] is not None:
        most = "" if goal["cost"] is None else f" of ${goal['cost']:,.2f}"
        told += f", ${goal['used_cost']:,.2f}{most}"
    return told


def report(view: dict[str, Any]) -> Iterator[str]:
    """How it went: what failed and why, what was left out, and what took longest."""
    state = view["state"].replace("_", " ")
    yield f"{view['name']} {state}: {counts(view)}"
    if view["ended_at"]:
        yield f"took {_lasted(view['made_at'], view['ended_at'])}"
    for told in ("failed", "asking", "running"):
        found = [step for step in view["steps"] if step["state"] == told]
        if found:
            yield ""
            yield f"{told}:"
        for step in found[:MAX_REPORTED]:
            yield f"  {step['name']}: {_note(step) or step['job']}"
        if len(found) > MAX_REPORTED:
            yield f"  and {len(found) - MAX_REPORTED} more"
    ended = [step for step in view["steps"] if step["began_at"] and step["ended_at"]]
    ended.sort(key=lambda step: _seconds(step["began_at"], step["ended_at"]))
    if len(ended) > 1:
        yield ""
        yield "longest:"
        for step in ended[: -LONGEST - 1 : -1]:
            yield f"  {step['name']}: {_lasted(step['began_at'], step['ended_at'])}"


def _seconds(begin: str, end: str) -> float:
    span = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
    return span.total_seconds()


def _lasted(begin: str, end: str) -> str:
    minutes, seconds = divmod(_seconds(begin, end), 60)
    hours, minutes = divmod(int(minutes), 60)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes)
    return " ".join([*parts, f"{seconds:.1f} s"])


def counts(view: dict[str, Any]) -> str:
    told = view["counts"]
    return ", ".join(f"{told[state]} {state}" for state in _STATES if told.get(state))


def _note(step: dict[str, Any]) -> str:
    if step["state"] == "asking":
        return str(step["gate"])
    if step["why"]:
        return str(step["why"])
    if waiting := step.get("waiting"):
        works = f" of work {', '.join(waiting['works'])}" if waiting["works"] else ""
        return f"waits, {waiting['kind']}: {waiting['detail']}{works}"
    return " ".join(f"{name}={value}" for name, value in step["outputs"].items())
