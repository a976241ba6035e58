"""Fuzzes one target, in a process of its own that never comes back from it."""

from __future__ import annotations

import argparse
import sys

import atheris

# What is measured is what is imported from here on.
with atheris.instrument_imports(include=["forge_actors"], enable_loader_override=False):
    from fuzzing.table import BY_NAME


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzzing.one", description=__doc__)
    parser.add_argument("target", choices=BY_NAME)
    parser.add_argument("options", nargs="*", help="of libFuzzer")
    told = parser.parse_args()
    target = BY_NAME[told.target]
    atheris.Setup([sys.argv[0], *told.options], target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
