"""The clean-up as `status` and `doctor` show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.maintenance import problem
from forge_actors.domain.redaction import redact, scrub
from forge_actors.runtime.views import timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.cleaning import CleanClass
    from forge_actors.domain.maintenance import ClassVisit, CleanRun, Policy
    from forge_actors.domain.redaction import Roots


def maintenance_view(
    policy: Policy,
    run: CleanRun | None,
    visits: Mapping[CleanClass, ClassVisit],
    roots: Roots,
    *,
    given_up: str | None = None,
) -> dict[str, object]:
    """When it ran last, what it freed since the home was made, what it left and why."""
    view: dict[str, object] = {
        "enabled": policy.enabled,
        "period": policy.period,
        "runs": 0,
        "last": None,
        "problem": None,
    }
    if run is not None:
        error = None if run.error is None else scrub(redact(run.error), roots)
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
    view["classes"] = {name: _visit(visit, roots) for name, visit in visits.items()}
    return view


def _visit(visit: ClassVisit, roots: Roots) -> dict[str, object]:
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
