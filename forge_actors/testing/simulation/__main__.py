"""`python -m forge_actors.testing.simulation --seeds N`: run many seeds, and judge."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from forge_actors.testing.epic.simulation.__main__ import main as epics
from forge_actors.testing.simulation.coverage import REACHED_WITHIN
from forge_actors.testing.simulation.night import draw_night
from forge_actors.testing.simulation.plan import draw
from forge_actors.testing.simulation.run import run
from forge_actors.testing.simulation.simulation import Simulation, describe

if TYPE_CHECKING:
    from forge_actors.testing.simulation.plan import Plan


def main(arguments: list[str] | None = None) -> int:
    """0 if everything held in every run, and enough of them reached all there is."""
    given = sys.argv[1:] if arguments is None else arguments
    if "--epic" in given:
        return epics([each for each in given if each != "--epic"])
    options = _parser().parse_args(given)
    planned = draw_night if options.night else draw
    if options.seed is not None:
        return _run_one(planned(options.seed), trace=options.trace)
    simulation = Simulation(processes=options.jobs, draw=planned)
    seeds = range(options.start, options.start + options.seeds)
    for brief in simulation.run(seeds):
        if brief.violation is not None:
            print(f"seed {brief.seed}: {brief.violation}", flush=True)
            print("the least that fails so:")
            print(describe(simulation.minimal(brief.seed)))
            again = "python -m forge_actors.testing.simulation --seed"
            night = " --night" if options.night else ""
            print(f"run it again: {again} {brief.seed} --trace{night}")
            return 1
    return _report(simulation, whole=not options.night)


def _run_one(plan: Plan, *, trace: bool) -> int:
    result = run(plan)
    told = f"seed {plan.seed}: {result.violation or 'ok'}"
    print(describe(result) if trace else told)
    return 0 if result.violation is None else 1


def _report(simulation: Simulation, *, whole: bool) -> int:
    rate = simulation.seeds / simulation.seconds
    print(
        f"{simulation.seeds} seeds, {simulation.steps} steps: everything held;"
        f" {rate:.0f} seeds a second"
    )
    if not whole:
        return 0  # a night reaches what it is about
    coverage = simulation.coverage
    print(coverage.summary())
    if coverage.missing and simulation.seeds >= REACHED_WITHIN:
        print(f"not all was reached within {simulation.seeds} seeds", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m forge_actors.testing.simulation", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=100, metavar="N")
    parser.add_argument("--start", type=int, default=0, metavar="S")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--night", action="store_true", help="nights of agents")
    parser.add_argument("--epic", action="store_true", help="runs of EPICs")
    parser.add_argument("--seed", type=int, help="run this one only")
    parser.add_argument("--trace", action="store_true", help="with --seed: tell all")
    return parser


if __name__ == "__main__":
    sys.exit(main())
