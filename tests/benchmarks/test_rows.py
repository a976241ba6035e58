"""The rows that need a service run, in small sizes; nothing here is timed."""

from __future__ import annotations

from contextlib import nullcontext
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
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from benchmarks.rows import Sample
    from benchmarks.service import Service


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


@pytest.fixture(autouse=True)
def _light(monkeypatch: pytest.MonkeyPatch) -> None:
    """No service loads what serves agents: that is the most of its start."""
    for module in (service, returning):
        light = f"{module.SETTINGS}\n[gateway]\nmcp = false\n"
        monkeypatch.setattr(module, "SETTINGS", light)
    for name in ("SETTLE", "DEEP_SETTLE"):
        monkeypatch.setattr(w1, name, 0.0)
    monkeypatch.setattr(memory, "SETTLE", 0.0)
    monkeypatch.setattr(memory, "CALL", 10)


@pytest.fixture
def shared(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """One service for all rows that would have one of their own."""
    with service.running_service(bench.folder) as running:
        known: set[str] = set()
        register = running.add_repositories

        def add(paths: Sequence[Path]) -> list[str]:
            known.update(register([path for path in paths if path.name not in known]))
            return [path.name for path in paths]

        monkeypatch.setattr(running, "add_repositories", add)
        for module in (w1, starts, memory):
            monkeypatch.setattr(
                module, "running_service", lambda *_, **__: nullcontext(running)
            )
        yield running


def test_rates_starts_and_memory_have_numbers(bench: Bench, shared: Service) -> None:
    def rows(measure: Callable[[Bench], Iterable[Sample]]) -> dict[str, float]:
        return {one.name: one.value or 0.0 for one in measure(bench)}

    costs = {"cpu-service", "cpu-agent", "cpu-job", "idle", "others"}
    found = rows(w1.measure)
    assert set(found) == {"w1", *(f"w1-{cost}" for cost in costs)}
    assert min(found["w1"], found["w1-cpu-service"], found["w1-cpu-agent"]) > 0
    assert bench.seen["synchronous"] == "FULL"
    _queued_before_the_first_one_starts(bench, shared)
    _a_job_that_fails_has_no_rate(bench, shared)
    found = rows(w1.measure_deep)
    assert found["w1-deep"] > 0
    assert found["w1-deep-cpu-service"] > 0
    found = rows(starts.measure)
    commands = ("python", "help", "status", "submit", "jobs")
    assert list(found) == [f"start-{command}" for command in commands]
    assert min(found.values()) > 0
    found = rows(memory.measure)
    assert list(found)[:2] == ["memory-job", "memory-repository"]
    assert min(found["memory-task"], found["memory-task-nursery"]) > 0


def _queued_before_the_first_one_starts(bench: Bench, running: Service) -> None:
    names = running.add_repositories(bench.checkouts)
    before = {job["id"] for job in running.api.get("jobs")["jobs"]}
    with running.client() as client:
        w1.run_queued(client, running, w1.trivial_jobs(names, bench.jobs))
    found = running.api.get("jobs")["jobs"]
    jobs = [job for job in found if job["id"] not in before]
    assert len(jobs) == bench.jobs
    last_queued = max(job["created_at"] for job in jobs)
    assert last_queued < min(job["started_at"] for job in jobs)


def _a_job_that_fails_has_no_rate(bench: Bench, running: Service) -> None:
    names = running.add_repositories(bench.checkouts)
    jobs = [job | {"argv": ["false"]} for job in w1.trivial_jobs(names, 2)]
    with (
        running.client() as client,
        pytest.raises(ServiceFailed, match="ended otherwise: "),
    ):
        w1.run_queued(client, running, jobs)


def test_a_service_comes_back_to_all_of_its_jobs(bench: Bench) -> None:
    ready, first = restart.measure(bench)
    assert (ready.name, first.name) == ("restart", "restart-first")
    assert ready.value
    assert first.value
    assert ready.value < first.value


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


def test_a_service_is_measured_while_it_is_cleaned(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean, "PAIRS", 1)
    [sample] = clean.measure(replace(bench, jobs=1, finished=2000))
    assert sample.value is not None
    assert sample.note.startswith("2000 of 2000 ended jobs removed")


def test_the_state_is_asked_for_while_a_clean_up_spins(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clean, "QUESTIONS", 3)
    monkeypatch.setattr(clean, "PAIRS", 1)
    [sample] = clean.measure_spin(replace(bench, spin_seconds=0.0))
    assert sample.value is not None
    assert sample.value > 0


def test_many_checkouts_are_looked_at_and_jobs_start_meanwhile(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "STARTS", 1)
    monkeypatch.setattr(looks, "PERIOD", 0.2)
    samples = list(looks.measure(replace(bench, looked_at=24, starts=1)))
    names = ["looks", "looks-cpu", "w2-quiet", "w2-looking", "w2-looking-p99"]
    assert [sample.name for sample in samples] == names
    assert all(sample.value is not None for sample in samples)
