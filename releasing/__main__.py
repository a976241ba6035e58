"""Builds, compares, tries; exits with 1 and a line if something is wrong."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from releasing import Wrong
from releasing.building import build_twice
from releasing.trying import bill_of_materials, install, run_a_service


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m releasing", description=__doc__)
    parser.add_argument("folder", type=Path, help="for what is published")
    folder = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="forge-release-") as name:
        place = Path(name).resolve()
        try:
            wheel = build_twice(folder, place)
            python = install(wheel, place / "installed")
            bill_of_materials(python, folder / "sbom.cdx.json")
            run_a_service(python.parent, place)
        except Wrong as problem:
            print(f"releasing: {problem}", file=sys.stderr)
            return 1
    for file in sorted(folder.iterdir()):
        print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
