"""A request that comes from a job is taken for that of nobody else."""

from __future__ import annotations

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobRequest, Parent
from forge_actors.edges.gateway.callers import caller, mark_callers, named, origin_of
from forge_actors.edges.gateway.messages import Request

JOB = "1m8p4m8vr4gxxcyy9nk"


def request(job: str | None) -> Request:
    headers = {} if job is None else {"forge-job": job}
    return Request("POST", ("v1", "jobs"), "", headers)


def test_the_job_that_asks_is_known_by_its_header() -> None:
    assert (caller(request(JOB)), named(request(JOB))) == (JOB, f"job {JOB}")
    assert (caller(request(None)), named(request(None))) == (None, None)


@pytest.mark.parametrize("job", ["", "a b", "A", "../x", "é", "x" * 65])
def test_what_is_no_id_is_refused(job: str) -> None:
    with pytest.raises(InvalidInput, match="is no id of a job"):
        caller(request(job))


@pytest.mark.parametrize("origin", ["cli", "schedule:x", "job:another", "mcp"])
def test_it_passes_for_nobody_else(origin: str) -> None:
    assert origin_of(request(JOB), origin) == f"job:{JOB}"
    assert origin_of(request(None), origin) == origin


def test_what_it_submits_is_its_own() -> None:
    plain = JobRequest("app", ["true"], origin="cli")
    child = JobRequest("app", ["true"], origin="x", parent=Parent(JOB, 1, 1))
    mark_callers(request(JOB), [plain, child])
    assert (plain.origin, child.origin) == (f"job:{JOB}", "x")
    mark_callers(request(None), [other := JobRequest("app", ["true"])])
    assert other.origin == "cli"


def test_it_submits_for_no_other_job() -> None:
    other = JobRequest("app", ["true"], parent=Parent("another", 1, 1))
    with pytest.raises(InvalidInput, match="is not the job that asks"):
        mark_callers(request(JOB), [other])
    mark_callers(request(None), [other])
