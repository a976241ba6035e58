"""The rows that need a service run, in small sizes; nothing here is timed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from benchmarks import (
    agent_output,
    clean,
    epic,
    looks,
    memory,
    restart,
    returning,
    service,
    starts,
    w1,
    worktrees,
)
from benchmarks.rows import Bench
from benchmarks.service import ServiceFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from benchmarks.rows import Sample


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(
        tmp_path,
        jobs=8,
        warm_up=4,
        repositories=2,
        deep=10,
        shell_starts=1,
        awake=3,
        restart_queued=5,
        restart_finished=3,
        files=20,
    )


@pytest.mark.parametrize(
    ("measure", "names"),
    [
        (w1.measure, ["w1"]),
        (w1.measure_deep, ["w1-deep"]),
        (
            starts.measure,
            [
                "start-python",
                "start-help",
                "start-status",
                "start-submit",
                "start-jobs",
            ],
        ),
        (restart.measure, ["restart", "restart-first"]),
    ],
)
def test_a_row_has_a_number(
    bench: Bench, measure: Callable[[Bench], Iterable[Sample]], names: list[str]
) -> None:
    samples = list(measure(bench))
    assert [sample.name for sample in samples] == names
    assert all(sample.value and sample.value > 0 for sample in samples)
    assert bench.seen["synchronous"] == "FULL"


def test_all_that_wait_for_a_limit_return_once_it_ends(bench: Bench) -> None:
    [sample] = returning.measure(replace(bench, parked=8))
    assert sample.value is not None
    assert sample.value > 0


def test_a_large_epic_takes_no_more_requests_than_it_must(bench: Bench) -> None:
    samples = {
        sample.name: sample for sample in epic.measure(replace(bench, children=20))
    }
    assert samples["epic-requests"].value == 3
    assert samples["epic-requests"].note.startswith("and one for each of 19 children")
    assert samples["epic-unchanged"].value
    assert samples["epic-evaluate"].note.endswith("1 ready, 19 blocked")


def test_the_output_of_agents_is_read_in_little_memory(bench: Bench) -> None:
    rate, grown = agent_output.measure(replace(bench, output_bytes=1))
    assert rate.value is not None
    assert rate.value > 0
    assert grown.value is not None
    assert 0 < grown.value < 16


def test_memory_is_measured_while_every_repository_is_awake(bench: Bench) -> None:
    assert [sample.unit for sample in memory.measure(bench)] == ["bytes", "bytes"]


def test_jobs_are_queued_before_the_first_one_starts(bench: Bench) -> None:
    with service.running_service(bench.folder) as running, running.client() as client:
        names = running.add_repositories(bench.checkouts)
        w1.run_queued(client, running, w1.trivial_jobs(names, bench.jobs))
        jobs = running.api.get("jobs")["jobs"]
    assert len(jobs) == bench.jobs
    last_queued = max(job["created_at"] for job in jobs)
    assert last_queued < min(job["started_at"] for job in jobs)


def test_a_job_that_fails_has_no_rate(bench: Bench) -> None:
    failing = {"argv": ["false"]}
    with service.running_service(bench.folder) as running, running.client() as client:
        names = running.add_repositories(bench.checkouts)
        jobs = [job | failing for job in w1.trivial_jobs(names, 2)]
        with pytest.raises(ServiceFailed, match="ended otherwise: "):
            w1.run_queued(client, running, jobs)


def test_a_restart_that_lost_a_job_has_no_time(bench: Bench) -> None:
    counts = {"queued": 6, "running": 3, "succeeded": 3}
    status = {"ready": True, "counts": counts}
    restart.expect(status, bench)
    with pytest.raises(ServiceFailed, match="ready: True"):
        restart.expect(status, replace(bench, restart_queued=6))


def test_worktrees_are_made_in_both_ways(bench: Bench) -> None:
    samples = list(worktrees.measure(bench))
    assert [sample.name for sample in samples] == ["worktrees-in-turn", "worktrees"]
    assert all(sample.value for sample in samples)


def test_a_service_is_measured_while_it_is_cleaned(bench: Bench) -> None:
    small = replace(bench, jobs=1, finished=10_000)
    [sample] = clean.measure(small)
    assert sample.value is not None
    assert sample.note.startswith("10000 of 10000 ended jobs removed")


def test_the_state_is_asked_for_while_a_clean_up_spins(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean, "QUESTIONS", 3)
    [sample] = clean.measure_spin(replace(bench, spin_seconds=0.0))
    assert sample.value is not None
    assert sample.value > 0


def test_many_checkouts_are_looked_at_and_jobs_start_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "STARTS", 1)
    samples = list(looks.measure(replace(bench, looked_at=40, starts=1)))
    names = ["looks", "looks-cpu", "w2-quiet", "w2-looking", "w2-looking-p99"]
    assert [sample.name for sample in samples] == names
    assert all(sample.value is not None for sample in samples)
