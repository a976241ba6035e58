"""A file of a workflow, decoded, as a service takes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

_TABLES = ("workflow", "items", "template", "goal", "act", "check")
_KEYS = (*_TABLES, "step")


def workflow_from(
    table: dict[str, Any], name: str, beside: Callable[[str], str]
) -> dict[str, Any]:
    """The workflow of a file that has this name: `[workflow]` and its `[[step]]`
    tables. `beside` says where a path is that begins at the file.

    Raises:
        InvalidInput: it has no such form.
    """
    for key in table:
        if key not in _KEYS:
            raise InvalidInput(
                key,
                "is not known; a file has a [workflow] and [[step]] tables, for a"
                " campaign [items] and a [template], for a goal an [act] and a [check]",
            )
    for each in _TABLES:
        if not isinstance(table.get(each, {}), dict):
            raise InvalidInput(each, f"is written [{each}], once")
    given = {each: table[each] for each in _TABLES[1:] if each in table}
    header = {**table.get("workflow", {}), **given}
    steps = table.get("step", [])
    if not isinstance(steps, list) or not all(isinstance(s, dict) for s in steps):
        raise InvalidInput("step", "is written [[step]], once for each")
    # TOML has times of its own; others say them as text.
    try:
        text = json.dumps({**header, "steps": steps}, default=str, allow_nan=False)
    except ValueError:
        raise InvalidInput(
            "workflow", "has a number that is none, or infinite"
        ) from None
    workflow: dict[str, Any] = json.loads(text)
    workflow.setdefault("name", name)
    items = workflow.get("items", {})
    kinds = (items.get("files"), items.get("command"), workflow.get("template"))
    named = [entry for entry in kinds if isinstance(entry, dict)]
    for entry in (workflow, *workflow["steps"], *named):
        repo = entry.get("repo")
        if isinstance(repo, str) and ("/" in repo or repo in (".", "..")):
            entry["repo"] = beside(repo)
    return workflow
