"""How what a job did in its worktree reads. Works on the JSON of a result."""

from __future__ import annotations

from typing import Any

from forge_actors.cli.text import clean

Json = dict[str, Any]
#: Files that a page names; the verb `diff` has all of them.
SHOWN = 20


def result_lines(result: Json) -> list[str]:
    """Its commits and files; how many there are comes first."""
    lines = [f"changes  {summary(result)}"]
    if result.get("note"):
        lines.append(f"  {clean(result['note'])}")
    lines += [
        f"  {clean(commit['id'])[:12]} {clean(commit['subject'])}"
        for commit in result.get("commits", ())[:SHOWN]
    ]
    files = result.get("files", ())
    lines += [f"  {_file(file)}" for file in files[:SHOWN]]
    left = (result.get("file_count") or 0) - len(files[:SHOWN])
    if left > 0:
        lines.append(f"  … and {left} more")
    return lines


def summary(result: Json) -> str:
    """What it is in numbers."""
    branch = clean(result["branch"])
    if result.get("file_count") is None:
        return f"on {branch}: not known"
    text = (
        f"on {branch}: {_count(result.get('commit_count') or 0, 'commit')},"
        f" {_count(result['file_count'], 'file')}"
        f" (+{result.get('added') or 0} -{result.get('deleted') or 0})"
    )
    uncommitted = result.get("uncommitted")
    return f"{text}, {uncommitted} not committed" if uncommitted else text


def _file(file: Json) -> str:
    name = clean(file["path"])
    if file.get("renamed_from"):
        name = f"{clean(file['renamed_from'])} → {name}"
    if file.get("added") is None:
        return f"{file['status']} {name} (binary)"
    return f"{file['status']} {name} (+{file['added']} -{file.get('deleted') or 0})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
