"""Fuzzes each target for a while; exits with 1 if one broke, and names the input."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from fuzzing.running import fuzz
from fuzzing.table import BY_NAME, TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all by default")
    parser.add_argument("--seconds", type=int, default=20, help="for each; 20")
    parser.add_argument("--keep", type=Path, help="a folder for what is learned")
    parser.add_argument("--list", action="store_true", help="name the targets")
    parser.add_argument("--try", type=Path, metavar="FILE", help="run one input alone")
    told = parser.parse_args()
    unknown = [name for name in told.targets if name not in BY_NAME]
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}; see --list")
    if told.list:
        for target in TARGETS:
            print(f"{target.name:20} {target.says}")
        return 0
    names = told.targets or list(BY_NAME)
    if told.__dict__["try"] is not None:
        for name in names:
            BY_NAME[name].check(told.__dict__["try"].read_bytes())
        return 0
    place = told.keep or Path(tempfile.mkdtemp(prefix="forge-fuzzing-"))
    bad = 0
    print(f"{'target':20} {'executions':>12} {'reached':>8} {'kept':>6}")
    for name in names:
        outcome = fuzz(BY_NAME[name], told.seconds, place.resolve() / name)
        numbers = f"{outcome.executions:12,} {outcome.reached:8,} {outcome.kept:6,}"
        print(f"{name:20} {numbers}{'' if outcome.good else '  broke'}", flush=True)
        if not outcome.good:
            bad += 1
            print(outcome.said, file=sys.stderr)
            for file in outcome.crashes:
                print(f"fuzzing: {name} breaks with {file}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
