"""A workflow that a repository brings along, as the request that begins it."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from forge_actors.domain.effects import in_order, shown
from forge_actors.domain.forge_files import FOLDER
from forge_actors.domain.requests import convert
from forge_actors.domain.trust import SOURCE
from forge_actors.domain.workflow_tables import workflow_from
from forge_actors.domain.workflow_views import WorkflowRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.effects import Effect
    from forge_actors.domain.forge_files import FiledWorkflow
    from forge_actors.domain.repositories import Repository


def trusted_workflow(
    repo: Repository, filed: FiledWorkflow, authorised: Sequence[Effect]
) -> WorkflowRequest:
    """What begins it; its jobs may have those of the effects that they declare.

    Raises:
        InvalidInput: naming the field that is wrong.
    """
    beside = partial(_beside, os.path.join(repo.path, FOLDER))
    workflow = workflow_from(filed.table, filed.name, beside)
    workflow.setdefault("repo", repo.name)
    workflow["source"] = f"{SOURCE}{repo.name}/{filed.name}"
    parts = [workflow.get(name, {}) for name in ("template", "act", "check")]
    for entry in (*workflow["steps"], *parts):
        if isinstance(job := entry.get("job"), dict):
            _authorise(job, authorised)
    return convert(workflow, WorkflowRequest)


def _beside(folder: str, path: str) -> str:
    return os.path.normpath(os.path.join(folder, path))


def _authorise(job: dict[str, Any], authorised: Sequence[Effect]) -> None:
    argv, declared = job.get("argv", []), job.get("effects", [])
    if isinstance(argv, list) and isinstance(declared, list):
        words = (word for word in declared if isinstance(word, str))
        may = in_order(set(authorised) & {*words, *shown(argv)})
        if may:
            job["authorised"] = list(may)
