"""The simulation of EPIC runs holds, and says what it found when something does not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from forge_actors.testing.epic.simulation import Simulation, describe, run
from forge_actors.testing.simulation.__main__ import main

if TYPE_CHECKING:
    import pytest

#: The suite runs these; the environment `simulation` of tox runs 2,000.
SEEDS = range(50)
#: Of these it is looked at what happened, event by event.
REPLAYED = range(6)
DIGESTS = """
from forge_actors.testing.epic.simulation import run
for seed in range(6):
    print(run(seed).digest)
"""


def test_everything_holds_whatever_becomes_of_the_scheduler() -> None:
    simulation = Simulation()
    for brief in simulation.run(SEEDS):
        assert brief.violation is None, brief
    assert simulation.schedulers > 3 * len(SEEDS)
    assert simulation.workers > 2 * len(SEEDS)
    # A few seeds reach most of it.
    coverage = simulation.coverage
    assert len(coverage.missing) < (len(coverage.faults) + len(coverage.deeds)) / 2


def test_a_seed_is_replayed_to_the_event_in_any_process() -> None:
    """Not one iteration over a set may decide what comes first."""
    told = subprocess.run(
        [sys.executable, "-c", DIGESTS],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert told == [run(seed).digest for seed in REPLAYED]
    assert len(set(told)) == len(REPLAYED)


def test_the_command_says_how_fast_it_was_and_what_it_reached(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--epic", "--seeds", "3"]) == 0
    told = capsys.readouterr().out
    assert "3 seeds of EPICs" in told
    assert "seeds a second" in told
    assert "faults by point and moment" in told
    assert main(["--epic", "--seed", "1", "--trace"]) == 0
    assert "scheduler 1 writes binding" in capsys.readouterr().out


def test_a_run_is_told_from_its_plan_to_its_last_event() -> None:
    told = describe(run(1)).splitlines()
    assert told[0] == "seed 1: everything holds"
    assert told[-1].endswith("ends: nothing-admissible")
