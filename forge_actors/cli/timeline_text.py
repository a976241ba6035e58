"""A timeline as lines of a terminal. Works on the JSON of it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import clean, fit, width
from forge_actors.domain.picture.marks import AGAIN, LOOKS, RUNNING
from forge_actors.domain.picture.ticks import span as length
from forge_actors.domain.picture.ticks import ticks, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from forge_actors.cli.color import Painter

    Json = dict[str, Any]

#: Rows of one repository, and columns of names; columns of the chart at least.
MAX_ROWS, NAME, LEAST_CHART = 16, 20, 20
WAITING = "  waiting"
#: The states whose colours stand for those of the letters.
_LETTERS = {each.letter: state for state, each in reversed(LOOKS.items())}
_LETTERS |= {AGAIN.letter: "cancelled", RUNNING.letter: "running"}
_DEPTHS = ".123456789"


def lines(told: Json, columns: int, painter: Painter) -> list[str]:
    """The chart, as wide as there is room."""
    since, seconds = told["epoch"], told["seconds"]
    end = "now" if told["live"] else written(since + seconds)
    top = f"{written(since)} to {end} UTC, {length(seconds)}"
    shown = [fit(top, columns)]
    if told["complete_from"] > 0:
        first = written(since + told["complete_from"])
        shown.append(fit(f"not everything is shown before {first}", columns))
    if not told["repositories"]:
        return [*shown, "nothing ran or waited then"]
    longest = max(width(clean(repo)) for repo in told["repositories"])
    name = max(min(NAME, longest), len(WAITING))
    chart = max(columns - name - 2, LEAST_CHART)
    shown.append(_line("", _axis(told, chart), name))
    for repo in told["repositories"]:
        shown += _repository(told, repo, name, chart, painter)
    return [*shown, *_legend(told, columns)]


def _line(label: str, text: str, name: int) -> str:
    label = fit(clean(label), name)
    return f"{label}{' ' * (name - width(label))}  {text}".rstrip()


def _axis(told: Json, chart: int) -> str:
    cells = [" "] * chart
    end = -1
    for at, text in ticks(told["epoch"], told["seconds"], max(2, chart // 10)):
        place = round(at / told["seconds"] * (chart - 1))
        text = f"|{text}"
        if place > end and place + len(text) <= chart:
            cells[place : place + len(text)] = text
            end = place + len(text)
    return "".join(cells)


def _repository(
    told: Json, repo: str, name: int, chart: int, painter: Painter
) -> Iterator[str]:
    runs = [run for run in told["runs"] if run["repo"] == repo]
    lanes = 1 + max((run["lane"] for run in runs), default=-1)
    label = repo
    for lane in range(min(lanes, MAX_ROWS)):
        row = _row([run for run in runs if run["lane"] == lane], told, chart)
        yield _line(label, _painted(row, painter), name)
        label = ""
    if lanes > MAX_ROWS:
        yield _line(label, f"({lanes - MAX_ROWS} rows more)", name)
    depths = [depth["jobs"] for depth in told["depths"] if depth["repo"] == repo]
    if depths:
        yield _line(label or WAITING, _waiting(depths, chart), name)


def _row(runs: Sequence[Json], told: Json, chart: int) -> str:
    cells = ["-"] * chart
    seconds = told["seconds"]
    for run in runs:
        began = max(run["began"] or 0.0, 0.0)
        ended = seconds if run["ended"] is None else min(run["ended"], seconds)
        first = min(int(began / seconds * chart), chart - 1)
        last = max(min(int(ended / seconds * chart), chart), first + 1)
        how = LOOKS.get(run["outcome"], AGAIN) if run["outcome"] else RUNNING
        # Of several in one cell the one that did not end well is seen.
        for place in range(first, last):
            if cells[place] in ("-", "="):
                cells[place] = how.letter
    return "".join(cells)


def _painted(row: str, painter: Painter) -> str:
    return "".join(
        painter.state("".join(same), _LETTERS.get(letter, ""))
        for letter, same in groupby(row)
    )


def _waiting(depths: Sequence[Sequence[float]], chart: int) -> str:
    """A digit a cell: how many waited, one for each that was not there all the while,
    and + for ten and more."""
    totals = [sum(each) for each in zip(*depths, strict=True)]
    cells = []
    for place in range(chart):
        first = place * len(totals) // chart
        last = max((place + 1) * len(totals) // chart, first + 1)
        most = max(totals[first:last])
        count = 0 if most <= 0 else max(1, round(most))
        cells.append("+" if count > 9 else _DEPTHS[count])
    return "".join(cells)


def _legend(told: Json, columns: int) -> list[str]:
    outcomes = {run["outcome"] for run in told["runs"]}
    used = {
        each.letter: each.word
        for each in (
            (LOOKS.get(outcome, AGAIN) if outcome else RUNNING) for outcome in outcomes
        )
    }
    words = [f"{letter} {word}" for letter, word in sorted(used.items())]
    if told["depths"]:
        words.append("1 to 9, +: jobs that waited")
    found, line = [], ""
    for word in words:
        if line and width(line) + width(word) + 3 > columns:
            found.append(line)
            line = ""
        line = f"{line}   {word}" if line else word
    return [*found, line] if line else found
