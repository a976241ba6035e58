"""`python -m forge_actors.testing.epic.simulation --seeds N`: run many seeds, and
judge; `python -m forge_actors.testing.simulation --epic` is the same."""

from __future__ import annotations

import argparse
import sys

from forge_actors.testing.epic.simulation.coverage import REACHED_WITHIN
from forge_actors.testing.epic.simulation.run import run
from forge_actors.testing.epic.simulation.simulation import Simulation, describe

AGAIN = "python -m forge_actors.testing.simulation --epic --seed"


def main(arguments: list[str] | None = None) -> int:
    """0 if everything held in every run, and enough of them reached all there is."""
    options = _parser().parse_args(arguments)
    if options.seed is not None:
        result = run(options.seed)
        told = f"seed {options.seed}: {result.violation or 'ok'}"
        print(describe(result, len(result.trace)) if options.trace else told)
        return 0 if result.violation is None else 1
    simulation = Simulation(processes=options.jobs)
    for brief in simulation.run(range(options.start, options.start + options.seeds)):
        if brief.violation is not None:
            print(f"seed {brief.seed}: {brief.violation}", flush=True)
            print("the least that fails so:")
            print(describe(simulation.minimal(brief.seed)))
            print(f"run it again: {AGAIN} {brief.seed} --trace")
            return 1
    return _report(simulation)


def _report(simulation: Simulation) -> int:
    rate = simulation.seeds / simulation.seconds
    print(
        f"{simulation.seeds} seeds of EPICs, {simulation.schedulers} schedulers,"
        f" {simulation.workers} workers: everything held; {rate:.0f} seeds a second"
    )
    coverage = simulation.coverage
    print(coverage.summary())
    if coverage.missing and simulation.seeds >= REACHED_WITHIN:
        print(f"not all was reached within {simulation.seeds} seeds", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m forge_actors.testing.simulation --epic", description=__doc__
    )
    parser.add_argument("--seeds", type=int, default=100, metavar="N")
    parser.add_argument("--start", type=int, default=0, metavar="S")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes")
    parser.add_argument("--seed", type=int, help="run this one only")
    parser.add_argument("--trace", action="store_true", help="with --seed: tell all")
    return parser


if __name__ == "__main__":
    sys.exit(main())
