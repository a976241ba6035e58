"""What the page about speed shows of the recorded run: a picture and two tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from docs.making.sources import ROOT, for_site

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Row = Mapping[str, Any]

RECORDED = ROOT / "benchmarks" / "recorded.json"
PAGE, PICTURE = "docs/speed.md", "images/speed.svg"
#: Those that run the same jobs, and what each keeps of them.
BESIDE = {
    "cref": ("a C program", "nothing"),
    "w1-spooler": ("task-spooler", "nothing; its queue is in memory"),
    "skeleton": (
        "a bare Python loop",
        "jobs and exit codes, synced; no limits, no claims",
    ),
    "w1": ("Forge Actors", "everything, synced"),
    "w1-deep": ("Forge Actors, many more queued", "everything, synced"),
    "w1-huey-forgets": ("huey, keeping no results", "the queue, synced"),
    "w1-huey": ("huey", "the queue and exit codes, synced"),
}
OURS = frozenset({"w1", "w1-deep"})
#: What the rows with a target are called here.
TITLES = {
    "w1": "trivial jobs, beside a C program",
    "w1_of_skeleton": "trivial jobs, beside a bare Python loop",
    "w1_of_huey": "trivial jobs, beside huey",
    "w1_of_spooler": "trivial jobs, beside task-spooler",
    "w1-deep_of_w1": "trivial jobs with very many more queued, beside without",
    "w1-readers": "trivial jobs while many read all events, beside without",
    "readers-memory": "memory that those who read events add",
    "w1-clean": "trivial jobs during a clean-up, beside without",
    "status-spin": "asking for the state while a clean-up spins, beside without",
    "accept-batch": "accepting jobs, in one call",
    "accept-callers": "accepting jobs, from many callers at once",
    "w2-median": "from submit to the job's first instruction, median",
    "w2-p99": "from submit to the job's first instruction, 99 of 100",
    "w2-quiet_of_w2-looking": "starts while nothing is looked at, beside during",
    "looks": "looking at very many repositories after a job in each",
    "looks-cpu": "CPU time that such looks take",
    "list": "a page of jobs while very many wait",
    "submit-http": "what a submit over the socket adds",
    "idle-cpu": "CPU time of an idle service in half a minute",
    "idle-rss": "memory of an idle service and its agent",
    "idle-rss-agents": "memory of an idle service that serves agents, and its agent",
    "memory-repository": "memory of a repository that is awake",
    "memory-job": "memory of a queued job",
    "ready": "start of a service on an empty home",
    "ready-mcp": "start of a service that serves agents, on an empty home",
    "restart": "start after a crash, with very many jobs",
    "w4-service": "jobs lost or run twice when the service is killed",
    "w4-all": "jobs lost or run twice when everything is killed",
    "w4-all-decided": "from ready until all that was killed is in its right state",
    "limit-return": "from the end of a provider's limit to the next start",
    "agent-output": "reading the output of agents, in a second of CPU time",
    "agent-output-memory": "memory that reading such output takes",
    "worktrees_of_in-turn": "making worktrees at once, beside one after another",
    "schedule-add_of_first": "adding the last of very many schedules, beside the first",
    "schedule-idle": "CPU time of schedules that are not due",
    "schedule-due": "until very many schedules that are due are decided",
    "workflow-step_of_small": "a step of a large workflow, beside one of a small",
    "epic-requests": "requests for a snapshot of a large EPIC",
    "epic-evaluate": "deciding what becomes of its children",
    "tell_of_trio": "messages to an actor, beside a bare trio channel",
    "ask_of_pykka": "questions to an actor, beside Pykka",
    "start-help_of_python": "`--help`, beside an interpreter that does nothing",
    "start-status_of_python": "`status`, beside an interpreter that does nothing",
    "start-submit_of_python": "`submit`, beside an interpreter that does nothing",
    "start-jobs_of_python": "`jobs`, beside an interpreter that does nothing",
}
#: Others may use so much of the cores before the page says that the run means little.
BUSY = 10.0

LEFT, WIDE, HIGH, TOP = 250, 760, 34, 44
STYLE = """\
text{font:14px system-ui,sans-serif;fill:#1c2733}
.s{font-size:12px;fill:#51606f}
.b{fill:#b9c4cf}
.k{fill:#2f6db5}
.l{stroke:#b83232;stroke-width:1.5;stroke-dasharray:5 4}
"""
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {height}" role="img" \
aria-labelledby="t e">
<title id="t">Trivial jobs a second, as a share of what a C program reaches</title>
<desc id="e">{told}</desc>
<style>
{style}</style>
<rect width="{wide}" height="{height}" fill="#fff"/>"""
BAR = """\
<text x="{before}" y="{base}" text-anchor="end">{name}</text>
<rect class="{kind}" x="{left}" y="{top}" width="{long:.1f}" height="24" rx="3"/>
<text x="{right}" y="{base}" text-anchor="end">{ratio:.2f}</text>"""
MARK = """\
<path class="l" d="M{x:.1f} {top} V{bottom}"/>
<text class="s" x="{x:.1f}" y="{base}" text-anchor="middle">{label} {number:g}</text>"""


def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text("utf-8"))
    return found


def pages() -> Iterator[tuple[str, str]]:
    """The page and its picture: their places on the site, and their texts."""
    run = recorded()
    by_hand = for_site((ROOT / PAGE).read_text("utf-8"), PAGE)
    yield PAGE.removeprefix("docs/"), by_hand + behind(run)
    yield PICTURE, picture(run)


def behind(run: Mapping[str, Any]) -> str:
    """What the page has behind what is written by hand."""
    rows = {row["name"]: row for row in run["rows"]}
    judged = [row for row in run["rows"] if row["bar"]]
    parts = [
        "",
        _told(run, rows),
        "## Trivial jobs, beside others",
        f"![Each as a share of what a C program reaches]({PICTURE})",
        *_table(("", "jobs/s", "of C", "what it keeps"), _beside(rows)),
        "## What is reached",
        *_table(("", "measured", "target"), map(_reached, _met(judged, True))),
        "## What is missing, and why",
        *(_missing(judged) or ["Nothing."]),
    ]
    unknown = _met(judged, None)
    if unknown:
        parts += ["## What this run did not measure"]
        parts += [f"- {_title(row)}: {row['note']}" for row in unknown]
    return "\n\n".join(_joined(parts)) + "\n"


def picture(run: Mapping[str, Any]) -> str:
    """Bars of the ratios to C, the largest first."""
    rows = {row["name"]: row for row in run["rows"]}
    found = [
        (rows[name]["ratio_to_cref"], name)
        for name in BESIDE
        if name in rows and rows[name]["ratio_to_cref"] is not None
    ]
    found.sort(key=lambda pair: -pair[0])
    most = max((ratio for ratio, _ in found), default=1.0)
    scale = (WIDE - LEFT - 70) / max(most, 1.0)
    height = TOP + HIGH * len(found) + 14
    told = "; ".join(f"{BESIDE[name][0]}: {ratio:.2f}" for ratio, name in found)
    lines = [HEAD.format(wide=WIDE, height=height, told=escape(told), style=STYLE)]
    for place, (ratio, name) in enumerate(found):
        long = ratio * scale
        lines.append(
            BAR.format(
                kind="k" if name in OURS else "b",
                name=escape(BESIDE[name][0]),
                left=LEFT,
                before=LEFT - 12,
                right=WIDE - 14,
                top=TOP + HIGH * place,
                base=TOP + HIGH * place + 17,
                long=long,
                ratio=ratio,
            )
        )
    for label, number in _marks(rows.get("w1", {})):
        lines.append(
            MARK.format(
                x=LEFT + number * scale,
                top=TOP - 8,
                bottom=height - 8,
                base=TOP - (28 if label == "goal" else 14),
                label=label,
                number=number,
            )
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


def _marks(w1: Row) -> Iterator[tuple[str, float]]:
    """The target of W1, and the goal beside it, from how its bar is written."""
    target, _, goal = str(w1.get("bar") or "").partition(", goal ")
    if target:
        yield "target", float(target.removeprefix(">= ").removesuffix(" of C"))
    if goal:
        yield "goal", float(goal)


def _told(run: Mapping[str, Any], rows: Mapping[str, Row]) -> str:
    machine = run["machine"]
    told = (
        f"Recorded on {run['recorded']} with {machine['implementation']}"
        f" {machine['python']} on {machine['cpus']} cores, SQLite {machine['sqlite']},"
        f" {machine['filesystem']}; rounds: {run['rounds']}, each of"
        f" {run['jobs']:,} jobs."
    )
    if run["quick"]:
        told += " **A trial run of small sizes: its numbers mean little.**"
    others = rows.get("w1-others", {}).get("value")
    if others is not None and others > BUSY:
        told += f" **Other programs used {others:.0f} % of the cores meanwhile.**"
    return told


def _beside(rows: Mapping[str, Row]) -> Iterator[tuple[str, ...]]:
    for name, (title, keeps) in BESIDE.items():
        row = rows.get(name, {})
        value, ratio = row.get("value"), row.get("ratio_to_cref")
        yield (
            title,
            "not measured" if value is None else f"{value:,.0f}",
            "" if ratio is None else f"{ratio:.2f}",
            keeps,
        )


def _met(judged: Sequence[Row], what: bool | None) -> list[Row]:
    return [row for row in judged if row["met"] is what]


def _title(row: Row) -> str:
    return TITLES[row["name"]]


def _number(row: Row) -> str:
    if "of C" in row["bar"] and row["ratio_to_cref"] is not None:
        return f"{row['ratio_to_cref']:.2f} of C"
    value = row["value"]
    digits = 2 if value < 100 and value % 1 else 0
    unit = "" if row["unit"] == "ratio" else f" {row['unit']}"
    return f"{value:,.{digits}f}{unit}"


def _reached(row: Row) -> tuple[str, ...]:
    return _title(row), _number(row), _signed(row["bar"])


def _missing(judged: Sequence[Row]) -> list[str]:
    short = [row for row in judged if row["met"] is False or row["limit"]]
    return [
        f"- {_title(row)}: {_number(row)}, wanted {_signed(row['bar'])}."
        f" {_sentence(row['limit'])}"
        for row in short
    ]


def _signed(bar: str) -> str:
    return bar.replace(">=", "≥").replace("<=", "≤")


def _sentence(limit: str) -> str:
    return f"{limit[0].upper()}{limit[1:]}."


def _table(heads: Sequence[str], rows: Iterator[tuple[str, ...]] | Any) -> list[str]:
    lines = [heads, ("---",) * len(heads), *rows]
    return ["\n".join(f"| {' | '.join(cells)} |" for cells in lines)]


def _joined(parts: Sequence[str]) -> Iterator[str]:
    """Entries of one list stand together."""
    entries: list[str] = []
    for part in parts:
        if part.startswith("- "):
            entries.append(part)
            continue
        if entries:
            yield "\n".join(entries)
            entries = []
        yield part
    if entries:
        yield "\n".join(entries)
