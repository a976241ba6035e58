"""A timeline as a trace: the JSON that Perfetto and the tracing of Chrome open.

A process is a repository or a kind of token, a thread one of its rows. Names and
numbers are in it, and never a command, its arguments, or a word of its output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.domain.picture.marks import BANDS, look, plain, title

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.timeline import Run, Timeline

#: The process of what holds for the whole service.
SERVICE = 1

Entry = dict[str, Any]


def trace(timeline: Timeline) -> dict[str, Any]:
    """The trace, to be written as JSON."""
    return {
        "displayTimeUnit": "ms",
        "otherData": {
            "program": "forge-actors",
            "since": timeline.since,
            "until": timeline.until,
        },
        "traceEvents": [
            *_service(timeline),
            *_repositories(timeline),
            *_tokens(timeline),
        ],
    }


def _service(timeline: Timeline) -> Iterator[Entry]:
    yield from _process(SERVICE, "service")
    threads = {kind: number for number, kind in enumerate(BANDS, start=1)}
    for kind in sorted({band.kind for band in timeline.bands if band.kind in threads}):
        yield _thread(SERVICE, threads[kind], BANDS[kind])
    for band in timeline.bands:
        args = {"reason": plain(band.reason or "", 200), "repo": plain(band.repo or "")}
        yield {
            "ph": "X",
            "name": BANDS.get(band.kind, plain(band.kind)),
            "cat": "service",
            "pid": SERVICE,
            "tid": threads.get(band.kind, 0),
            **_times(timeline, band.began, band.ended),
            "args": {key: value for key, value in args.items() if value},
        }


def _repositories(timeline: Timeline) -> Iterator[Entry]:
    pids = {repo: SERVICE + 1 + n for n, repo in enumerate(timeline.repositories)}
    for repo, pid in pids.items():
        yield from _process(pid, f"repository {plain(repo)}")
    for repo, lane in sorted({(run.repo, run.lane) for run in timeline.runs}):
        yield _thread(pids[repo], lane + 1, f"row {lane + 1}")
    for run in timeline.runs:
        yield _slice(timeline, run, pids[run.repo], run.lane + 1)
        for began, ended in run.suspended:
            yield {
                "ph": "X",
                "name": "stands still",
                "cat": "suspended",
                "pid": pids[run.repo],
                "tid": run.lane + 1,
                **_times(timeline, max(began, run.began or began), ended),
            }
    for repo, pid in pids.items():
        yield from _waiting(timeline, repo, pid)


def _waiting(timeline: Timeline, repo: str, pid: int) -> Iterator[Entry]:
    """How many jobs of a repository waited for what, wherever that changed."""
    depths = {plain(d.reason): d.jobs for d in timeline.depths if d.repo == repo}
    if not depths:
        return
    parts = max(map(len, depths.values()))
    last: dict[str, float] = dict.fromkeys(depths, 0.0)
    for part in range(parts):
        now = {reason: jobs[part] for reason, jobs in depths.items()}
        if now != last:
            at = timeline.epoch + timeline.seconds * part / parts
            yield {
                "ph": "C",
                "name": "waiting jobs",
                "pid": pid,
                "ts": _micro(at),
                "args": now,
            }
        last = now


def _tokens(timeline: Timeline) -> Iterator[Entry]:
    tokens = sorted({token for run in timeline.runs for token in run.slots})
    first = SERVICE + 1 + len(timeline.repositories)
    for pid, token in enumerate(tokens, start=first):
        limit = timeline.limits.get(token)
        of = "" if limit is None else f" (of {limit})"
        yield from _process(pid, f"token {plain(token)}{of}")
        runs = [run for run in timeline.runs if token in run.slots]
        for slot in sorted({run.slots[token] for run in runs}):
            yield _thread(pid, slot + 1, f"{plain(token)} {slot + 1}")
        for run in runs:
            yield _slice(timeline, run, pid, run.slots[token] + 1)


def _slice(timeline: Timeline, run: Run, pid: int, tid: int) -> Entry:
    args = {
        "job": plain(run.job),
        "attempt": run.attempt,
        "repository": plain(run.repo),
        "kind": None if run.kind is None else plain(run.kind),
        "end": look(run).word,
        "error": None if run.error is None else plain(run.error),
        "exit_code": run.exit_code,
        "waited_seconds": run.waited,
        "tokens": ", ".join(map(plain, run.tokens)),
    }
    return {
        "ph": "X",
        "name": title(run),
        "cat": look(run).style,
        "pid": pid,
        "tid": tid,
        **_times(timeline, run.began, run.ended),
        "args": {key: value for key, value in args.items() if value is not None},
    }


def _times(timeline: Timeline, began: float | None, ended: float | None) -> Entry:
    start = 0.0 if began is None else began
    end = max(start, timeline.seconds if ended is None else ended)
    first = _micro(timeline.epoch + start)
    return {"ts": first, "dur": _micro(timeline.epoch + end) - first}


def _micro(moment: float) -> int:
    """Microseconds; moments here are of milliseconds, so rows stay apart."""
    return round(moment * 1000) * 1000


def _process(pid: int, name: str) -> Iterator[Entry]:
    """Its name, and its place: in the order of their numbers."""
    for what, args in (
        ("process_name", {"name": name}),
        ("process_sort_index", {"sort_index": pid}),
    ):
        yield {"ph": "M", "name": what, "pid": pid, "tid": 0, "args": args}


def _thread(pid: int, tid: int, name: str) -> Entry:
    return {
        "ph": "M",
        "name": "thread_name",
        "pid": pid,
        "tid": tid,
        "args": {"name": name},
    }
