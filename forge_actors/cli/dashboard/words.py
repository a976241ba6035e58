"""How the lines of the dashboard read. All in them is harmless for a terminal."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import to_builtins

from forge_actors.cli.dashboard.board import SECTIONS, shown_title
from forge_actors.cli.job_text import TAIL, command, reason
from forge_actors.cli.text import clean, fit, span, width
from forge_actors.domain.jobs import RESERVED, TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.cli.dashboard.board import Board, Heading
    from forge_actors.domain.jobs import JobView

#: A letter for each state, so that none needs a colour.
SIGNS = {
    "dispatched": ">",
    "running": ">",
    "succeeded": "=",
    "failed": "x",
    "timed_out": "t",
    "cancelled": "c",
    "human_attention_required": "!",
    "waiting_for_approval": "?",
    "orphaned": "-",
    "stale": "-",
}
#: Colours of a terminal by state; what waits has none.
COLORS = {
    "dispatched": "cyan",
    "running": "cyan",
    "succeeded": "green",
    "failed": "red",
    "timed_out": "red",
    "human_attention_required": "red",
    "waiting_for_approval": "yellow",
    "cancelled": "yellow",
    "orphaned": "yellow",
    "stale": "yellow",
}
STATE, REPO, AGE, WHY, LEAST_NAME = 11, 14, 7, 16, 12
WIDE = 100
METER = 10


class Line(NamedTuple):
    """The cells of a job in the list, with the color of its state."""

    sign: str
    state: str
    rest: str
    color: str | None


def now() -> datetime:
    return datetime.now(UTC)


def line(job: JobView, columns: int, at: datetime, repo_columns: int = REPO) -> Line:
    """One job in so many columns."""
    state = fit(_state(job), STATE)
    repo = _column(job.repo, repo_columns)
    why = _column(_why(job), WHY if columns < WIDE else 2 * WHY)
    age = f"{_age(job, at):>{AGE}}"
    rest = f"{job.id[-TAIL:]} {repo} "
    room = columns - 2 - STATE - 1 - width(rest) - AGE - 1 - width(why) - 1
    if room < LEAST_NAME:
        room, why = room + width(why) + 1, ""
    name = _column(shown_title(job), max(room, 0))
    rest = f"{rest}{name} {age} {why}".rstrip()
    sign = "|" if job.paused else SIGNS.get(job.state, ".")
    rest = fit(rest, max(columns - 2 - STATE - 1, 0))
    return Line(sign, f"{state:<{STATE}}", rest, COLORS.get(job.state))


def repo_columns(jobs: Iterable[JobView]) -> int:
    """How many columns the names of the repositories of these jobs take."""
    names = {job.repo for job in jobs}
    return min(max((width(clean(name)) for name in names), default=1), REPO)


def heading(row: Heading) -> str:
    more = "" if row.known <= row.shown else f" of {row.known:,}, the newest"
    return f"{row.section.upper()} {row.shown:,}{more}"


def _column(text: str, columns: int) -> str:
    text = fit(clean(text), columns)
    return text + " " * (columns - width(text))


def _state(job: JobView) -> str:
    if job.paused:
        return "paused"
    if job.state == "human_attention_required":
        return "attention"
    if job.state == "dispatched":
        return "starting"
    return job.state.removeprefix("waiting_for_").replace("_", " ")


def _why(job: JobView) -> str:
    if job.state in TERMINAL and job.exit_code:
        return f"exit {job.exit_code}"
    if job.state in RESERVED:
        return "" if job.attempt <= 1 else f"attempt {job.attempt}"
    return reason(to_builtins(job))


def _age(job: JobView, at: datetime) -> str:
    """How long it runs, ran or waits."""
    if job.state in TERMINAL:
        if job.started_at is None or job.finished_at is None:
            return ""
        return span(_seconds(job.started_at, job.finished_at))
    began = job.started_at if job.state in RESERVED else job.queued_at
    return "" if began is None else span((at - _moment(began)).total_seconds())


def _seconds(began: str, ended: str) -> float:
    return (_moment(ended) - _moment(began)).total_seconds()


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


# -- the head --------------------------------------------------------------------------


def head(board: Board, columns: int, told: str | None) -> list[str]:
    """The lines at the top: the service, what is in use, how many jobs there are."""
    status = board.status
    service = status.get("service") or {}
    state = "ready" if status.get("ready") else "not ready"
    if told is not None:
        state = told
    elif status.get("draining"):
        state = "draining"
    first = f"forge-actors  {state}  {service.get('home', '')}"
    return [
        fit(clean(first), columns),
        fit(meters(status, columns), columns),
        fit(_counts(board), columns),
    ]


def meters(status: dict[str, Any], columns: int) -> str:
    """How much of each token is in use; with a bar where there is room."""
    capacity = dict(status.get("capacity") or {})
    capacity.pop("active_repositories", None)
    parts = [_meter(name, told, METER) for name, told in capacity.items()]
    parts += [
        _meter(name, told, 0)
        for name, told in (status.get("providers") or {}).items()
        if told.get("used") or told.get("state") != "open"
    ]
    text = "  ".join(parts)
    if width(text) > columns:
        short = [_meter(name, told, 0) for name, told in capacity.items()]
        text = "  ".join([*short, *parts[len(short) :]])
    return text


def _meter(name: str, told: dict[str, Any], size: int) -> str:
    used, limit = int(told.get("used") or 0), int(told.get("limit") or 0)
    bar = ""
    if size and limit:
        filled = min(size, -(-used * size // limit))
        bar = f"[{'#' * filled}{'.' * (size - filled)}] "
    state = told.get("state", "open")
    closed = "" if state == "open" else f" {state}"
    return clean(f"{name.replace('_', ' ')} {bar}{used}/{limit}{closed}")


def _counts(board: Board) -> str:
    counts = board.counts()
    text = "  ".join(f"{name} {counts[name]:,}" for name in SECTIONS)
    status = board.status
    pauses = status.get("pauses") or []
    notes = [f"paused: {pause.get('scope')}" for pause in pauses]
    policy = status.get("policy") or {}
    if policy.get("note"):
        notes.append(f"policy {policy['mode']}: {policy['note']}")
    pressure = status.get("pressure") or {}
    if pressure.get("active"):
        notes.append(f"pressure: {pressure.get('reason')}")
    if board.inbox_items:
        notes.append(f"inbox {board.inbox_items}")
    notes += [str(each) for each in status.get("degraded") or []]
    return clean("  ".join([text, *notes]))


# -- one job ---------------------------------------------------------------------------


def detail(job: JobView, sentence: str | None, at: datetime) -> list[str]:
    """What is to be said of one job, a line each, the most important first."""
    facts = [job.kind, job.priority, f"attempt {job.attempt} of {job.max_attempts}"]
    facts += [job.provider] if job.provider else []
    facts += [f"pid {job.pid}"] if job.pid else []
    if job.exit_code is not None:
        facts.append(f"exit code {job.exit_code}")
    if job.signal:
        facts.append(job.signal)
    lines = [
        f"{job.id}  {job.repo}  {shown_title(job)}",
        "  ".join([_state(job), *facts]),
    ]
    if sentence:
        lines.append(sentence)
    if job.error:
        # Of what it printed last the end says most, and there is little room.
        lines.append(f"{job.error.code}: {job.error.message}")
    if job.agent and job.agent.text:
        lines.append(f"agent: {job.agent.text}")
    if job.name:
        lines.append(f"$ {command({'argv': to_builtins(job.argv)})}")
    if job.claims:
        lines.append(f"claims {', '.join(job.claims)}")
    if job.after:
        lines.append(f"after {', '.join(each[-TAIL:] for each in job.after)}")
    if job.labels:
        lines.append(f"labels {', '.join(job.labels)}")
    lines.append(_times(job, at))
    return [clean(each) for each in lines]


def _times(job: JobView, at: datetime) -> str:
    text = f"submitted {span((at - _moment(job.created_at)).total_seconds())} ago"
    if job.finished_at is not None:
        text += f", ended {span((at - _moment(job.finished_at)).total_seconds())} ago"
    age = _age(job, at)
    if age:
        how = "ran" if job.state in TERMINAL else "runs for"
        text += f", {how if job.started_at else 'waits for'} {age}"
    return text
