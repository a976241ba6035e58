"""Look at `consumer.py` as the type checkers of a user do, whose program it could be.

    python tests/typing/check.py PLACE

The package has to be installed in the environment of this Python, and is looked at
there. Pyright needs node and npm; where they are not, it says so and is not run. It is
installed in PLACE.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import forge_actors

CONSUMER = Path(__file__).with_name("consumer.py")
PYRIGHT = "pyright@1.1.414"


def main() -> int:
    place = Path(sys.argv[1]).absolute()
    installed = str(Path(forge_actors.__file__).parents[1])
    with tempfile.TemporaryDirectory() as folder:
        # Far from this checkout, and from its settings for type checkers.
        shutil.copy(CONSUMER, folder)
        return mypy(folder) or pyright(folder, place, installed)


def mypy(folder: str) -> int:
    argv = [sys.executable, "-m", "mypy", "--strict", CONSUMER.name]
    return subprocess.run(argv, cwd=folder).returncode


def pyright(folder: str, place: Path, installed: str) -> int:
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        print("NOT RUN: pyright, as there is no node, or no npm")
        return 0
    program = place / "node_modules/.bin/pyright"
    if not program.exists():
        quiet = ("--silent", "--no-audit", "--no-fund")
        argv = [npm, "install", *quiet, "--prefix", str(place), PYRIGHT]
        if subprocess.run(argv).returncode:
            print(f"NOT RUN: pyright, as npm could not install {PYRIGHT}")
            return 0
    settings = {"strict": [CONSUMER.name], "extraPaths": [installed]}
    Path(folder, "pyrightconfig.json").write_text(json.dumps(settings))
    argv = [str(program), "--pythonpath", sys.executable, "--project", folder]
    return subprocess.run(argv, cwd=folder, env=os.environ).returncode


if __name__ == "__main__":
    sys.exit(main())
