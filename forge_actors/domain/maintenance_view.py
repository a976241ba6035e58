"""The clean-up as `status` and `doctor` show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.maintenance import ClassVisit, CleanRun, problem
from forge_actors.domain.redaction import redact, scrub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from forge_actors.domain.cleaning import CleanClass
    from forge_actors.domain.maintenance import Policy
    from forge_actors.domain.redaction import Roots

    #: A stored moment as readers see it.
    Moment = Callable[[float], str | None]

_report = msgspec.json.Decoder(ClassReport).decode


def run_from(rows: Iterable[tuple[Any, ...]]) -> CleanRun | None:
    """The row that is saved of the runs, columns like the fields, if there is one."""
    for row in rows:
        fields = dict(zip(CleanRun.__struct_fields__, row, strict=True))
        return msgspec.convert(fields, CleanRun, strict=False)
    return None


def visits_from(
    rows: Iterable[tuple[Any, ...]],
) -> Iterator[tuple[CleanClass, ClassVisit]]:
    """The rows of the visits: class, moment, cursor, report as JSON, size."""
    for name, visited_at, cursor, report, size in rows:
        told = None if report is None else _report(report)
        yield name, ClassVisit(name, visited_at, cursor, told, size)


def maintenance_view(
    policy: Policy | None,
    run: CleanRun | None,
    visits: Mapping[CleanClass, ClassVisit],
    roots: Roots,
    timestamp: Moment,
    *,
    given_up: str | None = None,
) -> dict[str, object]:
    """When it ran last, what it freed since the home was made, what it left and why."""
    view: dict[str, object] = {
        "enabled": None if policy is None else policy.enabled,
        "period": None if policy is None else policy.period,
        "runs": 0,
        "last": None,
        "problem": None,
    }
    if run is not None:
        error = None if run.error is None else scrub(redact(run.error), roots)
        run = structs.replace(run, error=error)
        view |= {
            "runs": run.runs,
            "failures": run.failures,
            "failures_in_a_row": run.failures_in_a_row,
            "removed": run.removed,
            "bytes": run.bytes,
            "last": {
                "began_at": timestamp(run.began_at),
                "ended_at": None if run.ended_at is None else timestamp(run.ended_at),
                "error": error,
            },
            "problem": problem(run),
        }
    if given_up is not None:
        why = scrub(redact(given_up), roots)
        view["problem"] = f"the clean-up does not run any more: {why}"
    view["classes"] = {
        name: _visit(visit, roots, timestamp) for name, visit in visits.items()
    }
    return view


def _visit(visit: ClassVisit, roots: Roots, timestamp: Moment) -> dict[str, object]:
    view: dict[str, object] = {"visited_at": timestamp(visit.visited_at)}
    report = visit.report
    if report is None:
        return {**view, "ended": False}
    error = None if report.error is None else scrub(redact(report.error), roots)
    return {
        **view,
        "ended": True,
        "removed": report.removed,
        "bytes": report.bytes,
        "skipped": report.skipped,
        "failed": report.failed,
        "error": error,
        "size": report.size,
        "more": report.cursor is not None,
    }
