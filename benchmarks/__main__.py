"""`python -m benchmarks`: measure the rows and print a table, or one JSON document."""

from __future__ import annotations

import argparse
import json
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from benchmarks import (
    accept,
    agent_output,
    api,
    clean,
    epic,
    idle,
    killed,
    limits,
    looks,
    memory,
    messages,
    peers,
    ready,
    recorded,
    restart,
    returning,
    schedules,
    skeleton,
    spooler,
    starts,
    streams,
    w1,
    w2,
    workflows,
    worktrees,
)
from benchmarks.costs import cores
from benchmarks.cref import CReference, filesystem, sync_rate
from benchmarks.report import Measured, Row, make_row, median, rows_of, table
from benchmarks.rows import Bench, Sample
from benchmarks.service import ServiceFailed
from benchmarks.wire import Refusal
from forge_actors.domain.errors import ForgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

FAILURES = (
    ServiceFailed,
    Refusal,
    ForgeError,
    OSError,
    KeyError,
    RuntimeError,
    subprocess.SubprocessError,
    apsw.Error,
)


def measure_skeleton(bench: Bench) -> Iterable[Sample]:
    """The durable loop with nothing around it."""
    folders = [str(path) for path in bench.checkouts]
    rate = skeleton.measure(
        folders,
        bench.jobs,
        bench.folder,
        warm_up=bench.warm_up,
        at_once=bench.at_once,
    )
    note = (
        f"{bench.jobs} jobs, {bench.at_once} at once, synced; a bound, not a product;"
        f" all queued first, after {bench.warm_up} others"
    )
    yield Sample("skeleton", rate, "jobs/s", note, rate=True)


def measure_disk(bench: Bench) -> Iterable[Sample]:
    """The rate of synced appends."""
    kind = filesystem(bench.folder)
    note = f"appends of 4 KiB to {kind}"
    if kind in {"tmpfs", "ramfs"}:
        note += ": memory, so nothing here is durable; use --dir"
    yield Sample("sync", sync_rate(bench.folder), "per s", note)


#: In this order, so that what is compared is measured close together.
MEASURES: dict[str, Callable[[Bench], Iterable[Sample]]] = {
    "sync": measure_disk,
    "peers": peers.measure,
    "spooler": spooler.measure,
    "skeleton": measure_skeleton,
    "w1": w1.measure,
    "w1-deep": w1.measure_deep,
    "readers": streams.measure,
    "messages": messages.measure,
    "w2": w2.measure,
    "looks": looks.measure,
    "accept": accept.measure,
    "api": api.measure,
    "starts": starts.measure,
    "limit-return": returning.measure,
    "agent-output": agent_output.measure,
    "worktrees": worktrees.measure,
    "schedules": schedules.measure,
    "workflows": workflows.measure,
    "epic": epic.measure,
    "ready": ready.measure,
    "restart": restart.measure,
    "w4": killed.measure,
    "clean": clean.measure,
    "spin": clean.measure_spin,
    "memory": memory.measure,
    "idle": idle.measure,
}
ROWS = ("cref", *MEASURES)
ONCE = frozenset(  # long
    {
        "api",
        "readers",
        "looks",
        "limit-return",
        "ready",
        "restart",
        "w4",
        "clean",
        "spin",
        "memory",
        "idle",
    }
)


def run(
    bench: Bench, names: Sequence[str], rounds: int, progress: Callable[[str], None]
) -> list[Row]:
    """The rows asked for: medians of interleaved rounds.

    The C reference runs between all measurements; a ratio is that of a number to the
    mean of the two rates around it, and its median is that of the rounds' ratios.
    """
    reference = CReference(bench.folder)
    references: list[float] = []

    def reference_rate() -> float | None:
        rate = reference.rate(bench.jobs, bench.at_once)
        references.extend([] if rate is None else [rate])
        return rate

    found: list[Measured] = []
    before = reference_rate()
    for number in range(rounds):
        for name, measure in MEASURES.items():
            if name not in names or (number and name in ONCE):
                continue
            progress(f"round {number + 1} of {rounds}: {name}")
            samples: list[Sample] = []
            try:
                samples.extend(measure(bench))
            except FAILURES as error:
                reason = f"failed: {type(error).__name__}: {error}"
                samples.append(Sample(name, None, "", reason))
            after = reference_rate()
            found += [
                Measured(sample, number, ratio_of(sample, before, after))
                for sample in samples
            ]
            before = after
    rows: list[Row] = []
    if "cref" in names:
        what = f"posix_spawn and wait in C, {bench.jobs} jobs, {bench.at_once} at once"
        cref_note = what if reference.available else "no C compiler: no ratios"
        cref = statistics.median(references) if references else None
        rows.append(make_row("cref", cref, "jobs/s", 1.0 if cref else None, cref_note))
        cost = median([seconds * 1e6 for seconds in reference.costs])
        note = "CPU time of each job in C, its starter's included"
        rows.append(make_row("cref-cpu", cost, "us", None, note))
    return limits.with_limits(rows + rows_of(found), cores())


def ratio_of(sample: Sample, before: float | None, after: float | None) -> float | None:
    if not sample.rate or sample.value is None or before is None or after is None:
        return None
    return sample.value / ((before + after) / 2)


def head(bench: Bench, options: argparse.Namespace) -> dict[str, object]:
    """What is known of a run before anything is measured."""
    return {
        "machine": {
            "cpus": cores(),
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
            "sqlite": apsw.sqlite_lib_version(),
            "filesystem": filesystem(bench.folder),
        },
        "quick": options.quick,
        "jobs": bench.jobs,
        "rounds": options.rounds,
    }


def document(
    bench: Bench, rows: list[Row], options: argparse.Namespace
) -> dict[str, object]:
    """The one JSON document; `synchronous` and `agent_pid` as the service said."""
    return {
        **head(bench, options),
        "synchronous": bench.seen.get("synchronous"),
        "agent_pid": bench.seen.get("agent_pid"),
        "rows": rows,
    }


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON document")
    parser.add_argument(
        "--rows", default=",".join(ROWS), help="some of: %(default)s (comma between)"
    )
    parser.add_argument("--jobs", type=int, default=1000, metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument(
        "--repositories", type=int, metavar="N", help="registered for the idle row"
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, one round")
    parser.add_argument(
        "--dir", type=Path, help="work in a new folder here: choose a real disk"
    )
    parser.add_argument(
        "--peer-python",
        help="an interpreter that has the peers; else one is made for this run",
    )
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="keep the run in a file"
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="exit with 1 if a ratio is a quarter worse than in a run that was kept",
    )
    options = parser.parse_args(arguments)
    options.rows = options.rows.split(",")
    unknown = [name for name in options.rows if name not in ROWS]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if min(options.jobs, options.rounds) < 1:
        parser.error("sizes are at least 1")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 if a row failed, or was lost `--against` a run that was kept.

    What was made is kept and named where a row failed.
    """
    if arguments is None:
        arguments = sys.argv[1:]
    if arguments[:1] == ["chaos"]:
        from benchmarks.chaos.__main__ import main as chaos

        return chaos(arguments[1:])
    if arguments[:1] == ["profile"]:
        from benchmarks.profile import main as profile

        return profile(arguments[1:])
    options = parse(arguments)
    folder = Path(tempfile.mkdtemp(prefix="fb-", dir=options.dir))
    bench = Bench(folder, jobs=options.jobs, peer_python=options.peer_python)
    if options.quick:
        bench.shrink()
        options.rounds = 1
    if options.repositories:
        bench.registered = options.repositories
    try:
        before = options.against and recorded.read(options.against)
        if before:
            recorded.check_same(before, head(bench, options))
    except recorded.Unusable as error:
        say(str(error))
        folder.rmdir()
        return 2
    failed = True
    try:
        rows = run(bench, options.rows, options.rounds, say)
        result = document(bench, rows, options)
        failed = any(str(row["note"]).startswith("failed:") for row in rows)
    finally:
        if failed:
            say(f"kept for a look: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(result, indent=2) if options.json else table(rows))
    if options.quick:
        say("small sizes, one round: whether a bar is met means little here")
    if options.record and failed:
        say(f"not recorded in {options.record}: a row failed")
    elif options.record:
        recorded.write(options.record, result)
    good = True
    if before:
        good, told = recorded.verdict(recorded.compared(before, result))
        say(told)
    return int(failed or not good)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
