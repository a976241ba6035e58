"""Fuzzes each target for a while; exits with 1 if one broke, and names the input."""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from fuzzing import place

if TYPE_CHECKING:
    from fuzzing.target import Target


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzzing", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all by default")
    parser.add_argument("--seconds", type=int, default=20, help="for each; 20")
    parser.add_argument("--keep", type=Path, help="a folder for what is learned")
    parser.add_argument("--list", action="store_true", help="name the targets")
    parser.add_argument("--input", type=Path, metavar="FILE", help="run one alone")
    told = parser.parse_args()
    measured = not (told.list or told.input)
    known = _targets(measured=measured)
    if unknown := [name for name in told.targets if name not in known]:
        parser.error(f"there is no target {unknown[0]!r}; see --list")
    chosen = [known[name] for name in told.targets] or list(known.values())
    if told.list:
        for target in chosen:
            print(f"{target.name:20} {target.says}")
        return 0
    if told.input:
        for target in chosen:
            target.check(told.input.read_bytes())
        return 0
    kept = told.keep or Path(tempfile.mkdtemp(prefix="forge-fuzzing-"))
    status = _fuzz(chosen, told.seconds, kept.resolve())
    if not told.keep and not status:
        shutil.rmtree(kept)
    return status


def _targets(*, measured: bool) -> dict[str, Target]:
    """The targets by their names; `measured`: their branches are counted."""
    if not measured:
        return dict(importlib.import_module("fuzzing.table").BY_NAME)
    import atheris

    with atheris.instrument_imports(include=["forge_actors", "fuzzing.targets"]):
        return dict(importlib.import_module("fuzzing.table").BY_NAME)


def _fuzz(targets: list[Target], seconds: int, kept: Path) -> int:
    from fuzzing.running import fuzz

    place.folder()  # of this process, so it goes with it
    bad = 0
    print(f"{'target':20} {'executions':>12} {'reached':>8} {'kept':>6}", flush=True)
    for target in targets:
        outcome = fuzz(target, seconds, kept / target.name)
        numbers = f"{outcome.executions:12,} {outcome.reached:8,} {outcome.kept:6,}"
        state = "" if outcome.good else "  broke"
        print(f"{target.name:20} {numbers}{state}", flush=True)
        if not outcome.good:
            bad += 1
            print(outcome.said, file=sys.stderr)
            for file in outcome.crashes:
                print(f"fuzzing: {target.name} breaks with {file}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
