"""How a repository reads in a table or on a page. Works on the JSON of one."""

from __future__ import annotations

from typing import Any

from forge_actors.cli.text import span

HEAD = (
    *("NAME", "BRANCH", "GIT", "SYNC", "AGE"),
    *("WAITING", "RUNNING", "ENABLED", "PATH"),
)
#: The columns that give way when not all fit.
FLEXIBLE = (8, 1, 0)
COUNTS = ("staged", "unstaged", "untracked", "conflicts")
#: Characters of a commit that are shown.
SHORT = 10

Json = dict[str, Any]


def row(view: Json) -> tuple[str, ...]:
    """The cells of one repository, in the order of `HEAD`."""
    status = view["status"]
    return (
        view["name"],
        branch(status),
        state(status),
        sync(status),
        age(status),
        str(view["waiting"]),
        str(view["running"]),
        "yes" if view["enabled"] else "no",
        view["path"],
    )


def branch(status: Json) -> str:
    """The branch, or the commit where none is checked out."""
    if status["clean"] is None:
        return "-"
    if status["detached"]:
        return f"({(status['head'] or '')[:SHORT]})"
    return str(status["branch"])


def state(status: Json) -> str:
    """Whether it is clean, in a word or two."""
    if status["clean"] is None:
        return "-"
    changed = sum(status[name] for name in COUNTS)
    text = "clean"
    if status["conflicts"]:
        text = "conflict"
    elif not status["clean"]:
        text = f"{changed}{'+' if status['at_least'] else ''} changed"
    return f"{text}, {status['operation']}" if status["operation"] else text


def sync(status: Json) -> str:
    """How far it is from its upstream: `+2 -1`, `=` where it is not."""
    if status["ahead"] is None:
        return "-"
    if not (status["ahead"] or status["behind"]):
        return "="
    return f"+{status['ahead']} -{status['behind']}"


def age(status: Json) -> str:
    """How old the look is, marked where it may be out of date."""
    if status["age_ms"] is None:
        return "-"
    return span(status["age_ms"] / 1000) + ("?" if status["stale"] else "")


def shown(view: Json) -> dict[str, object]:
    """What a page shows of a repository: the status in lines of its own."""
    status = view["status"]
    lines: dict[str, object] = {
        **{name: value for name, value in view.items() if name != "status"},
        "trust": (view.get("trust") or {}).get("says"),
        "enabled": "yes" if view["enabled"] else "no",
        "attention": view["attention"] or None,
        "leases": [
            f"{lease['job']} {' '.join(lease['claims']) or 'none'}"
            for lease in view["leases"]
        ],
        "attention_jobs": [
            f"{job['id']} {job['state']}" for job in view["attention_jobs"]
        ],
    }
    if status["clean"] is not None:
        counts = (f"{status[name]} {name}" for name in COUNTS if status[name])
        ago = span(status["age_ms"] / 1000)
        lines |= {
            "branch": branch(status) + (" (no commit yet)" if status["unborn"] else ""),
            "head": status["head"],
            "upstream": status["upstream"] and f"{status['upstream']} {sync(status)}",
            "git": ", ".join((state(status), *counts)),
            "looked_at": f"{status['observed_at']}, {ago} ago",
        }
    lines["stale"] = status["reason"]
    return lines
