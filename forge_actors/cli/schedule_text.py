"""Schedules as lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import table, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

HEAD = ("SCHEDULE", "REPO", "STATE", "WHEN", "NEXT", "RUNS", "NOTE")
PAST = ("DUE", "DECIDED", "JOB", "REASON")


def listing(views: Sequence[dict[str, Any]]) -> Iterable[str]:
    rows = [
        (
            view["name"],
            view["repo"],
            view["state"],
            view["trigger"],
            view["next"] or "",
            str(view["runs"]),
            _note(view),
        )
        for view in views
    ]
    return table(HEAD, rows, columns=terminal_width(), flexible=[3, 6]) if rows else []


def told(times: Sequence[dict[str, Any]]) -> Iterable[str]:
    """A time a line, and what would become of it."""
    for time in times:
        runs = "runs" if time["runs"] else "does not run"
        yield f"{time['at'] or 'not by time'}  {runs}: {time['reason']}"


def detail(
    view: dict[str, Any], occurrences: Sequence[dict[str, Any]]
) -> Iterable[str]:
    yield f"schedule  {view['name']}"
    yield f"repo      {view['repo']}"
    yield f"state     {view['state']}" + (f": {view['why']}" if view["why"] else "")
    yield f"when      {view['trigger']}"
    if view["clock_changes"]:
        yield f"clocks    {view['clock_changes']}"
    if view["waits_for"]:
        yield f"waits for {view['waits_for']}"
    yield f"next      {view['next'] or _no_time(view)}"
    wakes = view["definition"].get("wake")
    if wakes is None:
        yield f"job       {_command(view['definition']['job'])}"
    else:
        yield f"wakes     controller {wakes}"
    known = (
        "name",
        "repo",
        "job",
        "wake",
        "every",
        "cron",
        "at",
        "on",
        "manual",
        "timezone",
    )
    policies = {k: v for k, v in view["definition"].items() if k not in known}
    said = ", ".join(f"{name} {_said(value)}" for name, value in policies.items())
    yield f"policies  {said or 'the usual ones'}"
    if view["source"]:
        yield f"file      {view['source']}"
    yield f"revision  {view['revision']}"
    yield f"runs      {view['runs']}, {view['failures']} failures in a row"
    for job in view["jobs"]:
        yield f"running   job {job}"
    for entry in view["waiting"]:
        why = entry["reason"] or "its moment comes soon"
        yield f"waiting   {entry['due']}: {why}"
    if occurrences:
        yield ""
        rows = [
            (each["due"], each["decision"], each["job"] or "", _reason(each))
            for each in occurrences
        ]
        yield from table(PAST, rows, columns=terminal_width(), flexible=[3])


def _note(view: dict[str, Any]) -> str:
    if view["why"]:
        return str(view["why"])
    if view["waiting"]:
        return str(view["waiting"][0]["reason"])
    return f"job {view['jobs'][0]} runs" if view["jobs"] else ""


def _reason(each: dict[str, Any]) -> str:
    more = f" ({each['count']} times)" if each["count"] > 1 else ""
    return f"{each['reason']}{more}"


def _command(job: dict[str, Any]) -> str:
    words = [word if isinstance(word, str) else "(bytes)" for word in job["argv"]]
    if job.get("agent"):
        words.insert(0, f"agent {job['agent']}")
    return " ".join(words)


def _said(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list) else str(value)


def _no_time(view: dict[str, Any]) -> str:
    return "not by time" if view["waits_for"] else "never"
