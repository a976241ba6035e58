"""The wheel where nothing else is: what it brings along, and whether it works."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from typing import TYPE_CHECKING

from releasing import ROOT, Wrong
from releasing.building import moment

if TYPE_CHECKING:
    from pathlib import Path

#: Seconds that a command may take.
PATIENCE = 120


def install(wheel: Path, place: Path) -> Path:
    """The Python of a new environment that has the wheel and what it needs."""
    venv.create(place, with_pip=False)
    python = place / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], check=True)
    return python


def bill_of_materials(python: Path, file: Path) -> None:
    """Write down what is installed there, with versions and licences.

    Raises:
        Wrong: it is not the bill of what is there.
    """
    words = [sys.executable, "-m", "cyclonedx_py", "environment", str(python)]
    ours = ["--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application"]
    options = [*ours, "--output-reproducible", "-o", str(file)]
    surroundings = {**os.environ, "SOURCE_DATE_EPOCH": moment()}
    subprocess.run([*words, *options], env=surroundings, check=True)
    told = json.loads(file.read_text("utf-8"))
    whole = [told["metadata"]["component"], *told["components"]]
    parts = {part["name"].lower() for part in whole}
    code = (
        "from importlib.metadata import distributions as all;"
        " print('\\n'.join(each.name.lower() for each in all()))"
    )
    there = set(_output([str(python), "-I", "-c", code]).split())
    if parts != there or told["bomFormat"] != "CycloneDX":
        raise Wrong(f"the bill of materials differs: {sorted(parts ^ there)}")


def run_a_service(programs: Path, place: Path) -> None:
    """Have the installed program do what it is for, from a folder of its own.

    Raises:
        Wrong: a command did not end with 0.
    """
    folder, home = place / "work", ["--home", str(place / "home")]
    folder.mkdir()
    program = str(programs / "forge-actors")
    for words in (
        ["git", "init", "--quiet"],
        [program, "--version"],
        [program, "--help"],
        [program, "doctor"],
        [program, "serve", "--detach", *home],
        [program, "repo", "add", ".", *home],
    ):
        _output(words, folder)
    job = _output([program, "submit", *home, "--", "true"], folder).strip()
    for words in (
        [program, "wait", *home, "--timeout", "60s", job],
        [program, "status", *home],
        [program, "stop", *home],
        [program, "purge", "--yes", *home],
    ):
        _output(words, folder)


def _output(words: list[str], folder: Path | None = None) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FORGE_")}
    ended = subprocess.run(
        words,
        cwd=folder,
        env=clean,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if ended.returncode:
        told = f"{ended.stdout}{ended.stderr}".strip()
        raise Wrong(f"{' '.join(words)} ended with {ended.returncode}: {told}")
    return ended.stdout
