"""The clean-up as `status` prints it."""

from __future__ import annotations

from typing import Any

from forge_actors.cli.text import clean
from forge_actors.domain.sizes import size_text


def clean_up_lines(maintenance: dict[str, Any]) -> list[str]:
    """When it ran last, what it freed, what it left and why; none if it never ran."""
    last = maintenance.get("last")
    if last is None:
        return []
    lines = ["clean-up"]
    if maintenance["enabled"] is False:
        lines.append("  switched off  (setting maintenance.enabled)")
    moment = last["ended_at"] or f"runs since {last['began_at']}"
    lines.append(f"  last     {moment}, {maintenance['runs']} runs in all")
    count = maintenance["removed"]
    things = "1 thing" if count == 1 else f"{count} things"
    freed = f"{things}, {size_text(maintenance['bytes'])}"
    lines.append(f"  removed  {freed} in all")
    if maintenance["problem"] is not None:
        lines.append(f"  problem  {maintenance['problem']}")
    elif last["error"] is not None:
        lines.append(f"  failed   {last['error']}")
    for name, visit in sorted(maintenance["classes"].items()):
        lines += [f"  {name:<12} {told}" for told in _visit(visit)]
    return [clean(line) for line in lines]


def _visit(visit: dict[str, Any]) -> list[str]:
    """What a class came to that people may wonder about."""
    if not visit["ended"]:
        return ["the last visit did not end"]
    told = []
    if visit["removed"]:
        told.append(f"{visit['removed']} removed, {size_text(visit['bytes'])}")
    told += [f"{count} stay, {why}" for why, count in visit["skipped"].items()]
    if visit["failed"]:
        told.append(f"{visit['failed']} failed, {visit['error']}")
    return told
