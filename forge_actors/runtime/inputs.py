"""The inputs of requests: which jobs they are of, and whether those will keep files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.errors import ForgeError, InvalidInput
from forge_actors.domain.inputs import MAX_INPUTS, Input, folder_of, split_input
from forge_actors.edges.sqlite.rows import spec_from

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forge_actors.domain.requests import JobRequest
    from forge_actors.edges.sqlite.store import SqliteStore


def with_dependencies(requests: Sequence[JobRequest]) -> Sequence[JobRequest]:
    """The requests, each after the jobs whose files it takes.

    Raises:
        InvalidInput: one of these keeps no files, or is named in no way that can be.
    """
    if not any(request.inputs for request in requests):
        return requests
    keeps = {
        request.name: bool(request.artifacts)
        for request in requests
        if request.name is not None
    }
    found = []
    for index, request in enumerate(requests):
        if request.inputs:
            field = "inputs" if len(requests) == 1 else f"jobs[{index}].inputs"
            if len(request.inputs) > MAX_INPUTS:
                raise InvalidInput(field, f"are more than {MAX_INPUTS}")
            jobs = [split_input(text, field=field)[0] for text in request.inputs]
            for job in jobs:
                if not keeps.get(job, True):
                    raise _keeps_none(job, field)
            after = list(dict.fromkeys([*request.after, *jobs]))
            request = structs.replace(request, after=after)
        found.append(request)
    return found


def inputs_of(
    store: SqliteStore, request: JobRequest, names: Mapping[str, str], prefix: str
) -> tuple[Input, ...]:
    """The inputs of a request; `names` are those of its batch, with their ids.

    Raises:
        InvalidInput: a job is not there, or keeps no files.
    """
    field = f"{prefix}inputs"
    folders: dict[str, str] = {}
    name: str | None
    found = []
    for text in request.inputs:
        selector, pattern = split_input(text, field=field)
        if selector in names:
            job, name = names[selector], selector
        else:
            job, name = _kept_job(store, selector, field)
        if job not in folders:
            folders[job] = folder_of(job, name, set(folders.values()))
        found.append(Input(job, folders[job], pattern))
    return tuple(dict.fromkeys(found))


def _kept_job(store: SqliteStore, selector: str, field: str) -> tuple[str, str | None]:
    try:
        job = store.match(selector)
    except ForgeError as error:
        raise InvalidInput(field, str(error)) from None
    rows = store.read_pending("job_spec", job)
    if rows and not spec_from(rows[0]).artifacts:
        raise _keeps_none(job, field)
    named = store.read_pending("job_names", json.dumps([job]))
    return job, named[0][1] if named else None


def _keeps_none(job: str, field: str) -> InvalidInput:
    return InvalidInput(
        field, f"job {job} keeps no files: submit it with --artifact GLOB"
    )
