"""The sdist and the wheel, built twice."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING

from releasing import ROOT, Wrong

if TYPE_CHECKING:
    from pathlib import Path

#: The moment of everything in the archives where no commit tells one (1 January 2026).
NO_COMMIT = "1767225600"
#: What has to be in the sdist, besides what the wheel is made of.
IN_SDIST = (
    *("CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "README.md", "SECURITY.md"),
    *("Makefile", "pyproject.toml", "tox.ini", "tests/conftest.py", "docs/conf.py"),
    *("design/architecture.md", "examples/quickstart.toml", "benchmarks/__main__.py"),
)


def build_twice(folder: Path, place: Path) -> Path:
    """Put sdist and wheel into the folder; the wheel.

    Raises:
        Wrong: a second build differs, or something is missing or too much.
    """
    first = _build(ROOT, folder)
    [sdist] = [file for file in first if file.name.endswith(".tar.gz")]
    [wheel] = [file for file in first if file.suffix == ".whl"]
    with tarfile.open(sdist) as archive:
        archive.extractall(place / "unpacked", filter="data")
    [source] = (place / "unpacked").iterdir()
    # Neither the place nor the times of files nor what others may do count.
    for path in source.rglob("*"):
        os.utime(path)
        path.chmod(path.stat().st_mode & 0o700)
    for one, other in zip(first, _build(source, place / "second"), strict=True):
        if one.name != other.name or one.read_bytes() != other.read_bytes():
            raise Wrong(f"{one.name} is another one when it is built again")
    missing = [name for name in IN_SDIST if not (source / name).is_file()]
    if missing:
        raise Wrong(f"the sdist lacks {', '.join(missing)}")
    _look_into(wheel)
    return wheel


def _build(source: Path, folder: Path) -> list[Path]:
    words = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    surroundings = {**os.environ, "SOURCE_DATE_EPOCH": moment()}
    subprocess.run(words, cwd=source, env=surroundings, check=True)
    return sorted(file for file in folder.iterdir() if file.suffix in (".gz", ".whl"))


def moment() -> str:
    """When the last commit was, in seconds since 1970."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return given
    asked = subprocess.run(
        ["git", "log", "-1", "--format=%ct"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout.strip() or NO_COMMIT


def _look_into(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "forge_actors").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    packed = {name for name in names if ".dist-info/" not in name}
    if packed != ours:
        raise Wrong(f"the wheel differs from forge_actors/: {sorted(packed ^ ours)}")
    if not any(name.endswith("/licenses/LICENSE") for name in names):
        raise Wrong("the wheel has no licence")
