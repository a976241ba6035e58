"""Files of workflows, as the service takes them."""

from __future__ import annotations

import json
import os
from typing import Any

from forge_actors.client.schedule_files import read_table
from forge_actors.domain.errors import InvalidInput

_KEYS = ("workflow", "step")


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
                key, "is not known; a file has a [workflow] and [[step]] tables"
            )
    header = table.get("workflow", {})
    if not isinstance(header, dict):
        raise InvalidInput("workflow", "is written [workflow], once")
    steps = table.get("step", [])
    if not isinstance(steps, list) or not all(isinstance(s, dict) for s in steps):
        raise InvalidInput("step", "is written [[step]], once for each")
    # TOML has times of its own; others say them as text.
    workflow = json.loads(json.dumps({**header, "steps": steps}, default=str))
    workflow.setdefault("name", os.path.splitext(os.path.basename(path))[0])
    workflow["source"] = os.path.realpath(path)
    beside = os.path.dirname(workflow["source"])
    for entry in (workflow, *workflow["steps"]):
        repo = entry.get("repo")
        if isinstance(repo, str) and (os.sep in repo or repo in (".", "..")):
            entry["repo"] = os.path.normpath(os.path.join(beside, repo))
    return dict(workflow)
