"""The deterministic simulation: the whole runtime, a seed, and everything that fails.

    from forge_actors.testing.simulation import Simulation

    simulation = Simulation()
    for brief in simulation.run(range(1000)):
        assert brief.violation is None, brief
    print(simulation.coverage.summary())

One seed is one run, replayable to the event: `run(seed)` gives the same trace whenever
and wherever it is called. The actors, the domain, admission, the registry and the
decisions of the node agent are the real ones. Simulated are, behind the ports, the
store, the processes of jobs, the link between launcher and agent, the clocks and the
pressure of the machine.

A `Plan` is drawn from the seed: repositories, jobs, what people do, and what goes wrong
at which point. `draw` makes it; it is data, and a program can change it before it gives
it to `run`. The `Referee` keeps books of its own and says after each row that is saved
and each process that begins whether everything still holds. When something does not,
`Simulation.minimal` finds the least plan that breaks the same rule.

On the command line: `python -m forge_actors.testing.simulation --seeds 1000`.
"""

from forge_actors.testing.simulation.books import Violation
from forge_actors.testing.simulation.plan import Plan, draw
from forge_actors.testing.simulation.referee import Referee
from forge_actors.testing.simulation.run import Result, run
from forge_actors.testing.simulation.simulation import Brief, Simulation, describe

__all__ = [
    "Brief",
    "Plan",
    "Referee",
    "Result",
    "Simulation",
    "Violation",
    "describe",
    "draw",
    "run",
]
