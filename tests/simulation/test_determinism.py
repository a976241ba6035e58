"""One seed is one run: in this process, in another one, on the next day."""

from __future__ import annotations

import os
import subprocess
import sys

from forge_actors.testing.simulation import run

SEEDS = range(12)
DIGESTS = """
from forge_actors.testing.simulation import run
for seed in range(12):
    print(run(seed).digest)
"""


def test_a_seed_is_replayed_to_the_event() -> None:
    for seed in SEEDS:
        first, second = run(seed), run(seed)
        assert first.trace == second.trace
        assert first.digest == second.digest


def test_no_two_seeds_are_the_same_run() -> None:
    assert len({run(seed).digest for seed in SEEDS}) == len(SEEDS)


def test_what_hashes_are_in_a_process_changes_nothing() -> None:
    """Not one iteration over a set may decide what comes first."""
    digests = set()
    for hashes in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env={**os.environ, "PYTHONHASHSEED": hashes},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        digests.add(told)
    digests.add("".join(f"{run(seed).digest}\n" for seed in SEEDS))
    assert len(digests) == 1
