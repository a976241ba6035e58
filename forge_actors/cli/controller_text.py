"""Controllers as lines for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import table, terminal_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HEAD = ("CONTROLLER", "REPO", "STATE", "TURNS", "JOB", "NOTE")
WAKES = ("AT", "BY", "OUTCOME", "JOB", "REASON")


def listing(views: Sequence[dict[str, Any]]) -> Iterable[str]:
    rows = [
        (
            *(view["name"], view["repo"], view["state"]),
            *(_turns(view), view["job"] or "", _note(view)),
        )
        for view in views
    ]
    return table(HEAD, rows, columns=terminal_width(), flexible=[5]) if rows else []


def detail(view: dict[str, Any], wakes: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield f"controller  {view['name']}"
    yield f"repo        {view['repo']}"
    yield f"state       {view['state']}" + (f": {view['why']}" if view["why"] else "")
    yield f"host        {view['host']} {_pairs(view['binding'])}".rstrip()
    if view["job"]:
        yield f"session of  job {view['job']}"
    yield f"turns       {_turns(view)} since a person looked"
    yield f"limits      {_pairs(view['limits'])}"
    counts = {name: view[name] for name in ("repeats", "failures", "recoveries")}
    yield f"in a row    {_pairs(counts)}"
    if (turn := view["turn"]) is not None:
        told = turn["told"] or "nothing said yet"
        yield f"turn        since {turn['began_at']}, {told}" + _behind(turn["note"])
    if view["next"]:
        yield f"goes on     {view['next']}"
    first = view["prompt"].strip().splitlines()[:1]
    yield f"asked       {' '.join(first)}"
    if wakes:
        yield ""
        rows = [
            (each["at"], each["by"], each["state"], each["job"] or "", each["reason"])
            for each in wakes
        ]
        yield from table(WAKES, rows, columns=terminal_width(), flexible=[4])


def _turns(view: dict[str, Any]) -> str:
    return f"{view['rounds']}/{view['limits']['rounds']}"


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _behind(text: str) -> str:
    return f": {text}" if text else ""


def _note(view: dict[str, Any]) -> str:
    if view["why"]:
        return str(view["why"])
    if view["turn"] is not None:
        return "its turn goes on"
    return f"goes on at {view['next']}" if view["next"] else ""
