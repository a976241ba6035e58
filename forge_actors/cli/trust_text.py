"""What a repository brings along as lines for people, whoever wrote it.

Nothing of it may be hidden, so what cannot be printed is written as TOML would, where
other places leave it out.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Json = dict[str, Any]

#: Lines of two texts that are compared line by line: their product. More would take
#: long, so what differs between them is told as a whole.
MAX_COMPARED = 1_000_000
#: Characters of a digest that are shown.
SHORT = 12
#: Fields of a job that have a line of their own, before the others.
_COMMANDS = ("argv", "prompt", "verify", "after_job")


def shown(view: Json, *, diff: bool = True) -> Iterator[str]:
    """All that would be taken over, and how it differs from what was."""
    yield from map(visible, _lines(view, diff=diff))


def visible(text: str) -> str:
    """The same with everything that moves a cursor, turns text around or is nothing to
    be seen as an escape."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode()
        for char in text
    )


def _lines(view: Json, *, diff: bool) -> Iterator[str]:
    yield f"{view['repo']}  {view['path']}  {_state(view)}"
    if view["problem"]:
        yield f"it cannot be trusted as it is: {view['problem']}"
    for file in view["files"]:
        digest = file["digest"] or "-"
        yield f"  .forge/{file['name']}  {file['change']}  sha256 {digest}"
    for template in view["templates"]:
        yield ""
        yield from template_lines(template)
    for schedule in view["schedules"]:
        yield ""
        yield f"schedule {schedule['name']}  {schedule['change']}"
        yield f"  when       {schedule['trigger']}"
        yield from job_lines(schedule["job"])
    texts = {file["name"]: file["text"] or "" for file in view["files"]}
    for workflow in view["workflows"]:
        yield ""
        yield f"workflow {workflow['name']}  .forge/{workflow['file']}"
        lines = texts.get(workflow["file"], "").splitlines()
        yield from (f"  | {line}" for line in lines)
    if view["secrets"]:
        yield ""
        yield f"its jobs get the secrets: {', '.join(view['secrets'])}"
    if view["effects"]:
        yield ""
        yield f"its jobs say that they do to the outside: {', '.join(view['effects'])}"
    if diff:
        for file in view["files"]:
            yield from _difference(file)


def _state(view: Json) -> str:
    match view["state"]:
        case "trusted":
            return f"trusted since {view['trusted_at']}, and the same"
        case "differs":
            return f"differs from what was trusted on {view['trusted_at']}"
        case "untrusted":
            return "not trusted"
        case _:
            return "brings nothing along"


def template_lines(template: Json) -> Iterator[str]:
    """A template, each command of it in full."""
    title = f"template {template['name']}"
    if template.get("repo"):
        title += f"  of {template['repo']}"
    if template["description"]:
        title += f": {template['description']}"
    if template.get("hidden"):
        title += "  (one of the home has this name)"
    yield title
    for name, parameter in template["parameters"].items():
        default = parameter.get("default")
        value = "has to be given" if default is None else f"= {json.dumps(default)}"
        kind = parameter.get("type", "")
        choices = parameter.get("choices", [])
        rest = [kind, f"one of {json.dumps(choices)}" if choices else ""]
        rest.append(parameter.get("help", ""))
        yield "  ".join(part for part in (f"  --set {name}", value, *rest) if part)
    yield from job_lines(template["job"])
    if template["authorised"]:
        yield f"  authorised {', '.join(template['authorised'])}"


def job_lines(job: Json) -> Iterator[str]:
    """Everything that is said of a job; what it runs in full, and first."""
    if job.get("argv"):
        yield f"  command    {command(job['argv'])}"
    for field in _COMMANDS[1:]:
        if job.get(field):
            first, *rest = str(job[field]).split("\n")
            yield f"  {field:<10} {first}"
            yield from (f"             {line}" for line in rest)
    for field, value in job.items():
        if field not in (*_COMMANDS, "repo", "origin") and value not in (None, [], {}):
            text = value if isinstance(value, str) else json.dumps(value)
            yield f"  {field:<10} {text}"


def command(argv: Iterable[object]) -> str:
    """A command as a shell would take it."""
    return shlex.join(
        part if isinstance(part, str) else json.dumps(part) for part in argv
    )


def _difference(file: Json) -> Iterator[str]:
    if file["change"] == "same":
        return
    before = (file["before"] or "").splitlines()
    after = (file["text"] or "").splitlines()
    yield ""
    yield f"--- .forge/{file['name']}" + ("" if file["before"] is not None else "  new")
    yield f"+++ .forge/{file['name']}" + ("" if file["text"] is not None else "  gone")
    if len(before) * len(after) > MAX_COMPARED:
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    import difflib

    changes = difflib.unified_diff(before, after, lineterm="")
    yield from (line for index, line in enumerate(changes) if index > 1)
