"""The simulation of EPIC runs: a seed, schedulers that are killed, and a referee.

    from forge_actors.testing.epic.simulation import run

    result = run(17)
    assert result.violation is None, describe(result)

The loop of an EPIC, what it decides and its records are the real ones. Simulated are
its graph, its locks, the disk, the workers and all clocks. A plan is drawn from the
seed: children that wait for each other, people who change them and ask for the end,
workers that take no notice of it or leak a lock, and what goes wrong at which point.
One scheduler follows the other, whichever way that ended, until people stop; then all
that is ready must be done.

The referee keeps books of its own and judges every write, every worker that starts and
every end. One seed is one run, replayable to the event.
"""

from forge_actors.testing.epic.simulation.plan import Plan, draw
from forge_actors.testing.epic.simulation.run import Result, run
from forge_actors.testing.epic.simulation.simulation import (
    Brief,
    Simulation,
    describe,
)

__all__ = ["Brief", "Plan", "Result", "Simulation", "describe", "draw", "run"]
