"""What keeps a row from its bar or its goal: the limit, and the ceiling beside it.

Every number in such a text was measured by another row of the same run, as those of
other runs and machines say nothing about this one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.bars import BARS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.report import Row

MICRO, MILLI, KIB = 1e6, 1e3, 1024.0
#: Per cent of the cores that others may use before C is compared by its CPU time.
BUSY = 10.0
#: What is said of a row that no limit of the machine explains.
UNKNOWN = "no limit is known: a defect, or others use the machine"
#: Commits before a job begins: it is accepted, and it is dispatched.
COMMITS = 2


class Unmeasured(Exception):
    """A row that a text needs has no number in this run."""


class Numbers:
    """The numbers of a run, by the names of its rows."""

    def __init__(self, rows: Sequence[Row], cores: int) -> None:
        self.cores = cores
        self._rows = {str(row["name"]): row for row in rows}

    def __getitem__(self, name: str) -> float:
        return self._of(name, "value")

    def of_c(self, name: str) -> float:
        return self._of(name, "ratio_to_cref")

    def _of(self, name: str, what: str) -> float:
        number = self._rows.get(name, {}).get(what)
        if not isinstance(number, int | float):
            raise Unmeasured(name)
        return float(number)


def with_limits(rows: Sequence[Row], cores: int) -> list[Row]:
    """Each row with its `limit`; None where it reaches all that it is to reach."""
    numbers = Numbers(rows, cores)
    return [row | {"limit": limit_of(row, numbers)} for row in rows]


def limit_of(row: Row, numbers: Numbers) -> str | None:
    """What kept it, where it was judged and did not reach its bar or its goal."""
    name = str(row["name"])
    if row["met"] is None or (row["met"] and not _below_goal(row)):
        return None
    explain = LIMITS.get(name)
    if explain is None:
        return UNKNOWN
    try:
        return explain(numbers)
    except Unmeasured as missing:
        return f"unknown in this run: it has no row {missing}"


def _below_goal(row: Row) -> bool:
    bar = BARS[str(row["name"])]
    if bar.goal is None:
        return False
    number = row["ratio_to_cref"] if bar.of_c else row["value"]
    return isinstance(number, float) and number < bar.goal


def _cpu(name: str, numbers: Numbers) -> str:
    """All cores are what running jobs is bounded by: whose time a job is made of."""
    service = numbers[f"{name}-cpu-service"]
    agent, job = numbers[f"{name}-cpu-agent"], numbers[f"{name}-cpu-job"]

    others = numbers[f"{name}-others"]
    # What a job of C takes of the cores, idle ones too unless others use them.
    of_c = numbers.cores * MICRO / numbers["cref"]
    if others > BUSY:
        of_c = numbers["cref-cpu"]
    return (
        f"CPU of {numbers.cores} cores: {job:.0f} µs for the job's own process (C,"
        f" starter included: {numbers['cref-cpu']:.0f}), {service:.0f} service,"
        f" {agent:.0f} agent; {numbers[f'{name}-idle']:.0f} % idle,"
        f" {others:.0f} % used by others."
        f" Ceiling with no core idle {of_c / (service + agent + job):.2f} of C,"
        f" without the service's work {of_c / (agent + job):.2f}{_skeleton(numbers)}"
    )


def _skeleton(numbers: Numbers) -> str:
    """What Python reaches with nothing around it, if it was measured."""
    try:
        return f"; the skeleton reached {numbers.of_c('skeleton'):.2f}"
    except Unmeasured:
        return ""


def _deep(numbers: Numbers) -> str:
    deep, few = numbers["w1-deep-cpu-service"], numbers["w1-cpu-service"]
    return f"CPU of the service for each job: {deep:.0f} µs, {few:.0f} without them"


def _accept(name: str, numbers: Numbers) -> str:
    cpu = numbers[f"{name}-cpu"]
    return (
        f"one thread: {cpu:.0f} µs of the service's CPU for each job, so at most"
        f" {MICRO / cpu:,.0f} per s; SQLite alone keeps"
        f" {numbers['accept-sqlite']:,.0f} of these rows per s in one commit, and"
        f" the disk does {numbers['sync']:,.0f} syncs"
    )


def _start_of_job(numbers: Numbers) -> str:
    disk = COMMITS * MILLI / numbers["sync"]
    return (
        f"a bare posix_spawn takes {numbers['w2-spawn']:.2f} ms to that byte, and the"
        f" {COMMITS} commits before it wait {disk:.2f} ms for the disk"
    )


def _repository(numbers: Numbers) -> str:
    whole, task = numbers["memory-repository"], numbers["memory-task"]
    nursery = numbers["memory-task-nursery"]
    return (
        f"trio alone takes {task / KIB:.1f} KiB for a task with a channel,"
        f" {nursery / KIB:.1f} if it has a nursery for its workers;"
        f" {(whole - nursery) / KIB:.1f} are its queue, ledger and mailbox"
    )


def _asks(numbers: Numbers) -> str:
    ceiling = numbers["ask-trio"] / numbers["ask-pykka"]
    return (
        "two switches of tasks: bare trio channels, one made for each answer, reach"
        f" {numbers['ask-trio']:,.0f} per s, {ceiling:.2f} of Pykka's"
    )


def _tells(numbers: Numbers) -> str:
    ceiling = numbers["tell-called"] / numbers["tell-trio"]
    return f"one Python call a message: a bare channel behind one reaches {ceiling:.2f}"


def _shell(numbers: Numbers) -> str:
    ceiling = numbers["start-help"] / numbers["start-python"]
    return f"its start alone, of which help is no more, takes {ceiling:.2f} times"


def _memory(numbers: Numbers) -> str:
    return (
        f"{numbers['idle-rss-service']:.0f} MiB service,"
        f" {numbers['idle-rss-agent']:.0f} agent; interpreters that load only their"
        f" libraries have {numbers['idle-rss-python']:.0f} together"
    )


def _ready(numbers: Numbers) -> str:
    return (
        "starts of interpreters, one after another: the command, the service and the"
        f" agent load in {numbers['ready-imports']:.2f} s and do nothing then"
    )


def _ready_mcp(numbers: Numbers) -> str:
    return (
        f"{numbers['ready']:.2f} s are a start that serves none in the same run, and"
        f" loading what serves them takes {numbers['ready-imports-mcp']:.2f} s"
    )


def _restart(numbers: Numbers) -> str:
    return (
        f"{numbers['ready']:.2f} s are a start on an empty home in the same run; the"
        " rest is reading the jobs"
    )


def _readers(numbers: Numbers) -> str:
    job, own = numbers["readers-job"], numbers["readers-own"]
    return (
        f"CPU of the same cores: the readers take {own:.0f} µs for each job, telling"
        f" them {numbers['readers-told']:.0f}; a job takes {job:.0f} without them."
        " Ceiling with no core idle, if telling took nothing,"
        f" {100 * job / (job + own):.0f} %"
    )


def _as_w1(numbers: Numbers) -> str:
    return f"that of w1, which is {numbers.of_c('w1'):.2f} of C"


LIMITS: Mapping[str, Callable[[Numbers], str]] = {
    "w1": partial(_cpu, "w1"),
    "w1_of_skeleton": _as_w1,
    "w1_of_huey": _as_w1,
    "w1_of_spooler": _as_w1,
    "w1-deep_of_w1": _deep,
    "accept-batch": partial(_accept, "accept-batch"),
    "accept-callers": partial(_accept, "accept-callers"),
    "w1-readers": _readers,
    "w2-median": _start_of_job,
    "w2-p99": _start_of_job,
    "memory-repository": _repository,
    "ask_of_pykka": _asks,
    "tell_of_trio": _tells,
    "start-status_of_python": _shell,
    "start-submit_of_python": _shell,
    "start-jobs_of_python": _shell,
    "idle-rss": _memory,
    "idle-rss-agents": _memory,
    "ready": _ready,
    "ready-mcp": _ready_mcp,
    "restart": _restart,
}
