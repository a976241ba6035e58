"""Real jobs while service, agent and jobs are killed: nothing lost, nothing twice.

The sizes are small here; `python -m benchmarks chaos` has large ones.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.chaos.run import Sizes, run
from forge_actors.domain.jobs import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.chaos.report import Report
    from benchmarks.chaos.run import Scenario

pytestmark = pytest.mark.chaos

SEED = 4


@pytest.fixture
def place() -> Iterator[Path]:
    # Not pytest's: its long path would move the socket elsewhere.
    with tempfile.TemporaryDirectory(prefix="fc-") as folder:
        yield Path(folder).resolve()


def chaos(place: Path, scenario: Scenario, sizes: Sizes) -> Report:
    """The report of a run in which nothing was wrong."""
    report = run(place, sizes, SEED, scenario, print)
    print(report, file=sys.stderr)
    assert report.violations == []
    assert sum(report.states.values()) == sizes.jobs
    assert set(report.states) <= TERMINAL
    return report


def test_whoever_is_killed_every_job_ends_once(place: Path) -> None:
    sizes = Sizes(jobs=60, kills=8, agent_kills=4, repositories=3)
    report = chaos(place, "random", sizes)
    assert report.agent_kills >= sizes.agent_kills
    assert report.states["succeeded"] > 0


def test_jobs_go_on_to_their_end_while_no_service_is_there(place: Path) -> None:
    report = chaos(place, "outage", Sizes(jobs=300, repositories=3))
    assert set(report.states) == {"succeeded", "failed"}
    assert set(report.codes) == {"EXIT_NONZERO"}
    assert report.begun == 300
    assert report.ended_alone > 0


def test_only_what_was_interrupted_is_repeated_or_wants_attention(place: Path) -> None:
    """Service, agent and jobs are killed at once."""
    report = chaos(place, "wreck", Sizes(jobs=300, repositories=3))
    assert report.agent_kills == 1
    since_ready, _ = report.decided["all"]
    assert since_ready.count > 0
    assert since_ready.most <= 1.0
