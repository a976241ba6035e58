"""Open files: what a limit allows, and what a job that is held back is told."""

from __future__ import annotations

import pytest
from msgspec import structs

from forge_actors.domain.capacity import Capacity, Limits, Offer, fitting
from forge_actors.domain.line import Line
from forge_actors.domain.open_files import LEAST, OpenFiles
from forge_actors.domain.place import place

LIMITS = Limits({"workers": 100, "agents": 1}, active_repositories=9)


@pytest.mark.parametrize(
    ("limit", "workers", "connections"),
    [(None, None, None), (LEAST, 5, 16), (128, 16, 80), (1024, 165, 976), (8, 1, 2)],
)
def test_a_limit_allows_so_many_jobs_and_clients(
    limit: int | None, workers: int | None, connections: int | None
) -> None:
    files = OpenFiles(limit)
    assert (files.workers, files.connections) == (workers, connections)


def test_what_was_set_to_more_than_fits_is_named() -> None:
    assert OpenFiles(128).short_of(workers=16, connections=81) == ["connections"]
    assert OpenFiles(128).short_of(workers=17, connections=80) == ["workers"]
    assert OpenFiles(None).short_of(workers=10**6, connections=10**6) == []
    short = OpenFiles(1024).short_of(workers=1, connections=900, streams=77)
    assert short == ["streams"]


def test_streams_have_what_the_connections_leave() -> None:
    assert OpenFiles(1024).streams(900, 2000) == 76
    assert OpenFiles(1024).streams(900, 10) == 10
    assert OpenFiles(128).streams(500, 10) == 0
    assert OpenFiles(None).streams(500, 10) == 10


def test_the_jobs_of_one_that_took_more_files_have_those_it_was_given() -> None:
    files = OpenFiles(65_536, 128)
    assert (files.workers, files.connections) == (16, 65_488)
    assert str(files) == "the limit of open files (ulimit -n) is 128"


def test_workers_that_fit_stay_and_the_other_limits_always_do() -> None:
    assert fitting(LIMITS, OpenFiles(None)) is LIMITS
    assert fitting(LIMITS, OpenFiles(1024)) is LIMITS
    fewer = fitting(LIMITS, OpenFiles(128))
    assert fewer.tokens == {"workers": 16, "agents": 1}
    assert structs.replace(fewer, tokens=LIMITS.tokens, fewer_workers=None) == LIMITS


def test_a_job_that_is_held_back_for_it_is_told_so() -> None:
    """X-04"""
    capacity = Capacity(fitting(LIMITS, OpenFiles(64)))
    for number in range(5):
        capacity.take(f"g{number}", "r", ("workers",))
    offer = Offer("r", "job", ("workers",), 2, 0.0)
    told = place(offer, 0, 0.0, capacity, Line({}), 1.0, lambda grants: grants)
    assert told.kind == "pressure"
    assert told.detail == (
        "5 of 5 workers are in use"
        "; 100 are set, but the limit of open files (ulimit -n) is 64"
    )
    assert told.holders == ("g0", "g1", "g2", "g3", "g4")
    # What it lacks besides is not the fault of that limit.
    agents = structs.replace(offer, tokens=("agents",))
    capacity.take("a", "r", ("agents",))
    told = place(agents, 0, 0.0, capacity, Line({}), 1.0, lambda grants: grants)
    assert (told.kind, told.detail) == ("token", "1 of 1 agents are in use")
