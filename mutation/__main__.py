"""Tries a sample of the mutants of both rooms, or all of the modules that are named."""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from pathlib import Path

from mutation import PLACE, ROOMS, ROOT, Wrong
from mutation.leaving import left_out
from mutation.listing import mutants_of
from mutation.mutants import Mutant
from mutation.report import page
from mutation.sampling import draw
from mutation.trying import prepare, try_all
from mutation.verdicts import Verdicts

SEED = 1
SIZE = {"forge_actors/domain": 400, "forge_actors/actors": 300}


def main() -> int:
    arguments = _arguments()
    os.nice(arguments.nice)
    os.chdir(ROOT)
    try:
        _work(arguments)
    except Wrong as problem:
        print(f"mutation: {problem}", file=sys.stderr)
        return 1
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", help="tried whole, like forge_actors/…")
    parser.add_argument("--seed", type=int, default=SEED, help="of the sample")
    parser.add_argument("--size", type=int, help="of the sample, for each room")
    parser.add_argument("--nice", type=int, default=19, help="what it yields to others")
    parser.add_argument("--all", action="store_true", help="no sample: every mutant")
    parser.add_argument(
        "--again", action="store_true", help="try again what survived, after a change"
    )
    return parser.parse_args()


def _work(arguments: argparse.Namespace) -> None:
    runner = prepare()
    chosen: list[Mutant] = []
    made: dict[str, int] = {}
    without: dict[str, Counter[str]] = {}
    for room in ROOMS:
        modules = sorted(str(file) for file in Path(room).rglob("*.py"))
        every = {path: mutants_of(path) for path in modules}
        made[room] = sum(len(mutants) for mutants in every.values())
        reasons = Counter(left_out(one) for each in every.values() for one in each)
        without[room] = Counter({key: reasons[key] for key in reasons if key})
        tried = {
            path: [one for one in mutants if left_out(one) is None]
            for path, mutants in every.items()
        }
        if arguments.modules:
            tried = {path: tried.get(path, []) for path in arguments.modules}
        elif not arguments.all:
            tried = draw(tried, arguments.size or SIZE[room], arguments.seed)
        chosen += [one for mutants in tried.values() for one in mutants]
    if not chosen:
        raise Wrong("there is no mutant in what was named")
    random.Random(arguments.seed).shuffle(chosen)
    print(f"{len(chosen)} mutants are tried; seed {arguments.seed}", flush=True)
    verdicts = Verdicts()
    old = {"survived", "no tests"} if arguments.again else set()
    left = [one for one in chosen if verdicts.of(one) in {None, *old}]
    try_all(runner, left, verdicts.add)
    if not left:
        print("all of them have been tried before", flush=True)
    known = [(one, verdict) for one in chosen if (verdict := verdicts.of(one))]
    text = page(known, without, made, f"{len(chosen)} mutants, seed {arguments.seed}")
    (PLACE / "report.md").write_text(text, "utf-8")
    print(text)


if __name__ == "__main__":
    sys.exit(main())
