"""What makes two requests with one id the same."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from forge_actors.domain.isolation import inherited
from forge_actors.domain.relocation import Relocation
from forge_actors.domain.tracing import VARIABLE

if TYPE_CHECKING:
    from forge_actors.domain.changes import JobDetails
    from forge_actors.domain.jobs import Job, JobSpec

#: Stands for the folder of the repository; no path is like it.
_FOLDER = "//"

_canonical = msgspec.json.Encoder(order="deterministic")


def digest_of(job: Job, spec: JobSpec, details: JobDetails, folder: str) -> str:
    """What makes two requests with one id the same: all that the job is to do.

    Not how it was written, who asks, when, where the repository is, whose `folder` this
    is now, nor how far the jobs before it are by now.
    """
    here = Relocation(folder, _FOLDER)
    # Whose trace it is in is who asks.
    env = {name: value for name, value in spec.env.items() if name != VARIABLE}
    content = (
        structs.replace(
            job,
            id="",
            claims=here.claims(inherited(job.claims, job.id, "")),
            queued_at=0.0,
            state="queued",
            work=None,
        ),
        here.spec(
            structs.replace(spec, cwd=os.path.realpath(spec.cwd), env=env, work=None)
        ),
        structs.replace(details, created_at=0.0, origin="", request_id=None),
    )
    return hashlib.sha256(_canonical.encode(content)).hexdigest()
