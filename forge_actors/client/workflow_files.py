"""Files of workflows, as the service takes them."""

from __future__ import annotations

import os
from typing import Any

from forge_actors.client.schedule_files import read_table
from forge_actors.domain.workflow_tables import workflow_from


def read_workflow(path: str) -> dict[str, Any]:
    """The workflow of a file: `[workflow]` and its `[[step]]` tables; repositories are
    beside it.

    Raises:
        InvalidInput: it cannot be read, or has no such form.
    """
    source = os.path.realpath(path)
    folder = os.path.dirname(source)
    name = os.path.splitext(os.path.basename(path))[0]
    workflow = workflow_from(
        read_table(path), name, lambda at: os.path.normpath(os.path.join(folder, at))
    )
    workflow["source"] = source
    return workflow
