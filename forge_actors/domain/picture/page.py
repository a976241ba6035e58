"""A timeline as a page: one file without scripts, which needs nothing else."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from forge_actors.domain.picture.marks import (
    AGAIN,
    BANDS,
    LOOKS,
    REASONS,
    RUNNING,
    Look,
    lasted,
    look,
    plain,
    title,
    waits_for,
)
from forge_actors.domain.picture.markup import escape, tag
from forge_actors.domain.picture.plots import Plots
from forge_actors.domain.picture.style import PICTURE, WHOLE
from forge_actors.domain.picture.ticks import span, written
from forge_actors.domain.timeline import most_lanes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.timeline import Run, Timeline

#: Repositories that are drawn, and rows of one of them or of one kind of token.
MAX_REPOSITORIES, MAX_ROWS = 200, 64
#: Rows of the table.
MAX_LISTED = 2000
#: Nothing of the file may load or run anything.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
HEAD = ("Repository", "Job", "Name", "Attempt", "From, UTC", "Waited", "End")


def page(timeline: Timeline) -> str:
    """The whole file."""
    heading = "What ran when"
    if len(timeline.repositories) == 1:
        heading += f" in {plain(timeline.repositories[0])}"
    head = (
        tag("title", escape(f"Timeline {timeline.since} to {timeline.until}")),
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        tag("style", WHOLE, PICTURE),
    )
    body = tag("main", tag("h1", escape(heading)), picture(timeline))
    whole = tag("html", tag("head", *head), tag("body", body), lang="en")
    return f"<!DOCTYPE html>\n{whole}\n"


def picture(timeline: Timeline) -> str:
    """What is to be seen, for a page that has `style.PICTURE`."""
    plots = Plots(timeline)
    parts = [tag("p", escape(text)) for text in _sayings(timeline)]
    if timeline.runs or timeline.depths:
        parts += [
            _legend(timeline),
            tag("h2", "By repository"),
            _part("", plots.axis(), style="part axis"),
            *_repositories(timeline, plots),
        ]
    if timeline.runs:
        parts += [
            tag("h2", "By token"),
            _part("", plots.axis(), style="part axis"),
            *_tokens(timeline, plots),
            _table(timeline),
        ]
    return tag("div", *parts, class_="timeline")


def _sayings(timeline: Timeline) -> Iterable[str]:
    since, until = timeline.epoch, timeline.epoch + timeline.seconds
    end = "now" if timeline.live else written(until)
    yield (
        f"{written(since)} to {end} UTC, {span(timeline.seconds)}:"
        f" {_count(len(timeline.runs) + timeline.runs_left_out, 'attempt')}"
        f" in {_count(len(timeline.repositories), 'repository')}."
    )
    if timeline.complete_from > 0:
        shown = written(since + timeline.complete_from)
        yield f"Not everything before {shown} is shown."
    if not timeline.runs and not timeline.depths:
        yield "Nothing ran or waited then."


def _count(number: int, what: str) -> str:
    if number == 1:
        return f"1 {what}"
    return f"{number:,} {what[:-1] + 'ies' if what.endswith('y') else what + 's'}"


def _legend(timeline: Timeline) -> str:
    used = {look(run).word for run in timeline.runs}
    looks: list[Look] = [*LOOKS.values(), AGAIN, RUNNING]
    ends = [
        _key(each.style, f"{each.sign} {each.word}".strip(), run=True)
        for each in looks
        if each.word in used
    ]
    reasons = [
        _key(style, waits_for(reason))
        for reason, style in REASONS.items()
        if any(depth.reason == reason for depth in timeline.depths)
    ]
    bands = [
        _key(f"band {kind}", words)
        for kind, words in BANDS.items()
        if any(band.kind == kind for band in timeline.bands)
    ]
    return tag("ul", *ends, *reasons, *bands, class_="legend")


def _key(style: str, words: str, *, run: bool = False) -> str:
    size = {"width": 14, "height": 12}
    drawn = tag("g", tag("rect", **size), class_=f"run {style}")
    if not run:
        drawn = tag("rect", **size, class_=style)
    return tag("li", tag("svg", drawn, aria_hidden="true"), escape(words))


def _part(
    name: str, *plots: str, notes: Iterable[str] = (), style: str = "part"
) -> str:
    said = tag("div", escape(name), class_="name") if name else ""
    said += "".join(tag("div", escape(note), class_="note") for note in notes)
    return tag("div", tag("div", said), tag("div", *plots, class_="plot"), class_=style)


def _repositories(timeline: Timeline, plots: Plots) -> Iterable[str]:
    for repo in timeline.repositories[:MAX_REPOSITORIES]:
        runs = [run for run in timeline.runs if run.repo == repo]
        depths = [depth for depth in timeline.depths if depth.repo == repo]
        lanes = most_lanes(runs, repo)
        notes = [_count(len(runs), "attempt")]
        if lanes > 1:
            notes.append(f"up to {lanes} at once")
        if lanes > MAX_ROWS:
            notes.append(f"{lanes - MAX_ROWS} rows are not drawn")
        drawn = []
        if runs:
            shown = min(lanes, MAX_ROWS)
            rows = plots.rows(plain(repo), runs, _lane, shown, repo=repo)
            drawn.append(rows)
        if depths:
            waiting, most = plots.waiting(depths)
            drawn.append(waiting)
            # An average of a part; who waited shorter than that was one all the same.
            notes.append(f"up to {max(1, round(most))} waiting")
        yield _part(plain(repo), *drawn, notes=notes)
    more = len(timeline.repositories) - MAX_REPOSITORIES
    if more > 0:
        yield tag("p", escape(f"{_count(more, 'repository')} more are not drawn."))


def _tokens(timeline: Timeline, plots: Plots) -> Iterable[str]:
    for token in sorted({token for run in timeline.runs for token in run.slots}):
        runs = [run for run in timeline.runs if token in run.slots]
        used = max(run.slots[token] for run in runs) + 1
        limit = timeline.limits.get(token)
        rows = min(max(used, limit or 0), MAX_ROWS)
        notes = [f"up to {used} at once" + ("" if limit is None else f" of {limit}")]
        held = sum(_within(timeline, run.began, run.ended) for run in runs)
        if limit:
            notes.append(f"{held / timeline.seconds / limit:.0%} in use")
        drawn = plots.rows(plain(token), runs, partial(_slot, token), rows)
        yield _part(plain(token), drawn, notes=notes)


def _lane(run: Run) -> int:
    return run.lane


def _slot(token: str, run: Run) -> int:
    return run.slots[token]


def _within(timeline: Timeline, began: float | None, ended: float | None) -> float:
    last = timeline.seconds if ended is None else min(ended, timeline.seconds)
    return max(last - max(began or 0.0, 0.0), 0.0)


def _table(timeline: Timeline) -> str:
    newest = timeline.runs[: -MAX_LISTED - 1 : -1]
    rows = [tag("tr", *(tag("th", escape(text), scope="col") for text in HEAD))]
    for run in newest:
        end = look(run).word
        if run.exit_code is not None:
            end += f", exit code {run.exit_code}"
        cells = (
            plain(run.repo),
            plain(run.job),
            title(run),
            str(run.attempt),
            lasted(timeline, run.began, run.ended),
            "" if run.waited is None else span(run.waited),
            end if run.error is None else f"{end}, {plain(run.error)}",
        )
        rows.append(tag("tr", *(tag("td", escape(cell)) for cell in cells)))
    label = f"The attempts as a list, {len(newest)} of them, newest first"
    return tag(
        "details",
        tag("summary", escape(label)),
        tag("div", tag("table", *rows), class_="scroll"),
    )
