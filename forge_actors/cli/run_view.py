"""How a run is shown: a live table, lines, and the summary at the end."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Self

from forge_actors.cli.text import clean, span, table, terminal_width
from forge_actors.domain.jobs import RESERVED, TERMINAL, JobView
from forge_actors.domain.redaction import bounded, redact, scrub
from forge_actors.runtime.views import as_json, roots_of

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import RenderableType

    from forge_actors.runtime.batch import Progress

_STYLES = {
    "succeeded": "green",
    "running": "bold cyan",
    "dispatched": "cyan",
    "failed": "bold red",
    "timed_out": "bold red",
    "human_attention_required": "bold red",
    "cancelled": "yellow",
}
HEAD = ("JOB", "REPOSITORY", "STATE", "EXIT", "TIME")
#: Lines of the end of a failed job's output that the summary shows.
TAIL_LINES = 8
#: Characters of an error in a line of its own.
REASON = 200


def nothing() -> AbstractContextManager[None]:
    return nullcontext()


def title(job: JobView) -> str:
    return clean(job.name or job.id)


def _time(job: JobView, now: datetime) -> str:
    """How long a job ran, or runs so far."""
    if job.duration is not None:
        return span(job.duration)
    if job.started_at is None or job.state in TERMINAL:
        return ""
    began = datetime.fromisoformat(job.started_at)
    return span(max(0.0, (now - began).total_seconds()))


def reason(job: JobView, jobs: list[JobView]) -> str:
    """What a job waits for, or how it failed, in a few words; jobs by their names."""
    if job.waiting is not None:
        text = f"{job.waiting['kind']}: {job.waiting['detail']}"
    elif job.error is not None:
        text = bounded(job.error.message, REASON)
    else:
        return ""
    for other in jobs:
        text = text.replace(other.id, repr(title(other)))
    return clean(text)


class Plain:
    """A line for each change of a job's state, or nothing at all."""

    refresh: float | None = None

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._seen: dict[str, tuple[str, str]] = {}

    def note(self, text: str) -> None:
        if not self._quiet:
            print(clean(text), flush=True)

    def show(self, progress: Progress) -> None:
        for job in progress.jobs:
            kind = str(job.waiting["kind"]) if job.waiting else ""
            now = (job.state, kind)
            if not self._quiet and self._seen.get(job.id) != now:
                why = reason(job, progress.jobs)
                line = f"{progress.seconds:7.1f}s  {title(job)}  {job.state}"
                print(f"{line}  ({why})" if why else line, flush=True)
            self._seen[job.id] = now


class Live:
    """A table that is drawn anew at every change, and once a second."""

    refresh: float | None = 1.0

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive

        self._live = RichLive(
            console=Console(), auto_refresh=False, vertical_overflow="crop"
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def note(self, text: str) -> None:
        self._live.update(clean(text), refresh=True)

    def show(self, progress: Progress) -> None:
        self._live.update(self._draw(progress), refresh=True)

    def _draw(self, progress: Progress) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        now = datetime.now(UTC)

        rows = Table(box=None, pad_edge=False, expand=True)
        for name in ("job", "repository", "state", "time"):
            rows.add_column(name, no_wrap=True)
        rows.add_column("reason", no_wrap=True, overflow="ellipsis", ratio=1)
        for job in progress.jobs:
            rows.add_row(
                Text(title(job)),
                Text(clean(job.repo)),
                Text(job.state, style=_STYLES.get(job.state, "")),
                Text(_time(job, now)),
                Text(reason(job, progress.jobs), style="dim"),
            )
        ended = sum(job.state in TERMINAL for job in progress.jobs)
        running = sum(job.state in RESERVED for job in progress.jobs)
        count = len(progress.jobs)
        line = f"{ended} of {count} ended, {running} running, {progress.seconds:.0f} s"
        foot = Table.grid(padding=(0, 1), expand=True)
        foot.add_column(no_wrap=True)
        foot.add_column(ratio=1)
        foot.add_row(Text(line), ProgressBar(total=count, completed=ended))
        return Group(rows, foot)


def print_summary(progress: Progress, home: Path) -> None:
    """How each job went, what they waited for, and the end of what failed printed."""
    rows = [
        [
            title(job),
            clean(job.repo),
            job.state,
            "" if job.exit_code is None else str(job.exit_code),
            span(job.duration) if job.duration is not None else "",
        ]
        for job in progress.jobs
    ]
    print()
    for line in table(HEAD, rows, columns=terminal_width()):
        print(line)
    print()
    waits = sorted(progress.waits.items(), key=lambda entry: -entry[1])
    shown = ", ".join(f"{kind} {span(seconds)}" for kind, seconds in waits)
    print(f"waited for: {shown or 'nothing'}")
    good = sum(job.state == "succeeded" for job in progress.jobs)
    print(f"{good} of {len(progress.jobs)} succeeded in {span(progress.seconds)}")
    for job in progress.jobs:
        if job.state != "succeeded":
            why = reason(job, progress.jobs)
            print(f"\n{title(job)}: {job.state}: {why}", file=sys.stderr)
            _print_tail(job, home)


def _print_tail(job: JobView, home: Path) -> None:
    for stream in ("stdout", "stderr"):
        path = home / "logs" / f"{job.id}.{job.attempt}.{stream}"
        if path.exists():
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - 4096))
                text = file.read().decode("utf-8", "replace")
            # Before it is cut into lines: a key block has many.
            lines = scrub(redact(text), roots_of(home)).splitlines()
            for line in lines[-TAIL_LINES:]:
                print(f"  {stream}: {clean(line)}", file=sys.stderr)


def print_summary_json(progress: Progress) -> None:
    """The same as one JSON document on stdout."""
    document = {
        "ok": progress.succeeded,
        "seconds": round(progress.seconds, 3),
        "waits": {kind: round(value, 3) for kind, value in progress.waits.items()},
        "jobs": [as_json(job) for job in progress.jobs],
    }
    print(json.dumps(document, indent=2))
