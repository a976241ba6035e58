"""Files of workflows, as the service takes them."""

from __future__ import annotations

import json
import os
from typing import Any

from forge_actors.client.schedule_files import read_table
from forge_actors.domain.errors import InvalidInput

#: Tables that a file may have besides its steps.
_TABLES = ("workflow", "items", "template", "goal", "act", "check")
_KEYS = (*_TABLES, "step")


def read_workflow(path: str) -> dict[str, Any]:
    """The workflow of a file: `[workflow]` and its `[[step]]` tables; repositories are
    beside it.

    Raises:
        InvalidInput: it cannot be read, or has no such form.
    """
    table = read_table(path)
    for key in table:
        if key not in _KEYS:
            raise InvalidInput(
                key,
                "is not known; a file has a [workflow] and [[step]] tables, for a"
                " campaign [items] and a [template], for a goal an [act] and a [check]",
            )
    for name in _TABLES:
        if not isinstance(table.get(name, {}), dict):
            raise InvalidInput(name, f"is written [{name}], once")
    given = {name: table[name] for name in _TABLES[1:] if name in table}
    header = {**table.get("workflow", {}), **given}
    steps = table.get("step", [])
    if not isinstance(steps, list) or not all(isinstance(s, dict) for s in steps):
        raise InvalidInput("step", "is written [[step]], once for each")
    # TOML has times of its own; others say them as text.
    workflow = json.loads(json.dumps({**header, "steps": steps}, default=str))
    workflow.setdefault("name", os.path.splitext(os.path.basename(path))[0])
    workflow["source"] = os.path.realpath(path)
    beside = os.path.dirname(workflow["source"])
    items = workflow.get("items", {})
    kinds = (items.get("files"), items.get("command"), workflow.get("template"))
    named = [entry for entry in kinds if isinstance(entry, dict)]
    for entry in (workflow, *workflow["steps"], *named):
        repo = entry.get("repo")
        if isinstance(repo, str) and (os.sep in repo or repo in (".", "..")):
            entry["repo"] = os.path.normpath(os.path.join(beside, repo))
    return dict(workflow)
