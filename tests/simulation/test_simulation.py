"""The simulation holds, and says what it found when something does not."""

from __future__ import annotations

import pytest

from forge_actors.domain.history import History
from forge_actors.testing.simulation import Simulation, draw, run
from forge_actors.testing.simulation.__main__ import main

#: The suite runs these; the environment `simulation` of tox runs 2,000.
SEEDS, OF_HISTORY = range(25, 60), range(25)


def test_everything_holds_whatever_fails() -> None:
    simulation = Simulation()
    for brief in simulation.run(SEEDS):
        assert brief.violation is None, brief
    assert simulation.steps > 50 * len(SEEDS)


def test_the_events_of_a_run_are_its_whole_history() -> None:
    """Folded, they say of each dispatch that it broke no limit and no claim."""
    for seed in OF_HISTORY:
        history, found = History(), run(seed)
        assert found.violation is None, found.violation
        for event in found.events:
            history.apply(event)
            if event.kind == "job_dispatched":
                assert event.job is not None
                assert history.faults(event.job) == []


def test_each_plan_has_repositories_jobs_and_kinds_of_faults() -> None:
    for seed in range(200):
        plan = draw(seed)
        assert len(plan.repositories) >= 3
        assert len(plan.jobs) >= 20
        assert len({fault.kind for fault in plan.faults}) >= 3


def test_a_plan_without_faults_ends_as_well() -> None:
    plan = draw(3).without(faults=draw(3).faults)
    assert run(plan).violation is None


def test_the_command_says_how_fast_it_was_and_what_it_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seeds", "5"]) == 0
    told = capsys.readouterr().out
    assert "5 seeds" in told
    assert "seeds a second" in told
    assert "faults by point and moment" in told


def test_the_command_tells_a_run_event_by_event(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--seed", "1", "--trace"]) == 0
    told = capsys.readouterr().out
    assert "saved JobDispatched" in told
    assert "begins" in told
