"""Workflows as people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import table, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
