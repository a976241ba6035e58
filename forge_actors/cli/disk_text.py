"""The disk of a home as `status` and `doctor` print it."""

from __future__ import annotations

from typing import Any

from forge_actors.cli.text import clean
from forge_actors.domain.sizes import size_text


def disk_lines(disk: dict[str, Any]) -> list[str]:
    """The room there is, and what the home takes; none if nothing is known of both."""
    lines = []
    if disk.get("free") is not None:
        room = f"{size_text(disk['free'])} of {size_text(disk['total'])}"
        lines.append(f"  free  {room}, {_judged(disk)}")
    if told := home_text(disk.get("home") or {}):
        lines.append(f"  home  {told}")
    return [clean(line) for line in (["disk", *lines] if lines else [])]


def home_text(home: dict[str, Any]) -> str:
    """What the home takes, the largest class first; empty if it was never measured."""
    classes: dict[str, int] = home.get("classes") or {}
    if not classes:
        return ""
    largest = sorted(classes.items(), key=lambda each: -each[1])
    parts = [f"{name} {size_text(size)}" for name, size in largest if size]
    return f"{size_text(home['bytes'])}: {', '.join(parts) or 'nothing'}"


def _judged(disk: dict[str, Any]) -> str:
    if disk["state"] == "full":
        return "too little for new jobs"
    return "low" if disk["state"] == "low" else "enough"
