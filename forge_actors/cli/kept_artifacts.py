"""What was collected from jobs, of a home that nothing serves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from forge_actors.client import offline
from forge_actors.domain.errors import InvalidInput, NotFound
from forge_actors.domain.jobs import RESERVED
from forge_actors.domain.launch import Collected
from forge_actors.domain.requests import convert
from forge_actors.runtime.kept_artifacts import as_json, kept

if TYPE_CHECKING:
    from forge_actors.domain.artifacts import Artifacts

_QUERY = "SELECT spec, receipt, attempt FROM job WHERE id = ?"


def artifacts_of(
    home: str, selector: str, attempt: int | None = None
) -> tuple[str, Artifacts]:
    """The id of a job, and what is kept of one of its attempts, the last one.

    Raises:
        NotFound: no such job, or none was to be kept of it.
    """
    job = offline.job(home, selector)["id"]
    [(spec, receipt, last)] = offline.rows(home, _QUERY, [job])
    if not json.loads(spec).get("artifacts"):
        raise NotFound(f"job {job} was submitted without --artifact")
    if attempt is not None and not 1 <= attempt <= last:
        raise InvalidInput("attempt", f"{attempt} is not among the {last} there were")
    told = (
        json.loads(receipt or "{}").get("artifacts")
        if attempt in (None, last)
        else None
    )
    collected = None if told is None else convert(told, Collected)
    return job, kept(home, job, attempt or last, collected)


def with_artifacts(home: str, view: dict[str, Any]) -> dict[str, Any]:
    """The view of a job with what is kept of it, if something was to be."""
    if view["state"] in RESERVED or not view["attempt"]:
        return view
    try:
        _, found = artifacts_of(home, view["id"])
    except NotFound:
        return view
    return {**view, "artifacts": as_json(found)}
