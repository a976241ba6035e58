"""The peers' interpreter: a venv of the benchmark's own, with pinned versions."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
INSTALL_SECONDS = 180


@dataclass(frozen=True)
class PeerPython:
    """An interpreter, or None and why there is none."""

    python: str | None
    problem: str = ""

    def lacks(self, module: str) -> str | None:
        """Why a peer cannot be measured; None if it can."""
        if self.python is None:
            return self.problem
        probe = [self.python, "-c", f"import {module}"]
        if subprocess.run(probe, check=False, capture_output=True).returncode == 0:
            return None
        return f"skipped: {self.python} has no {module}; see --peer-python"

    def run(self, program: str, order: str) -> bytes:
        """What one of our peer programs prints, given its one argument.

        Raises:
            subprocess.SubprocessError: it failed, or took too long.
        """
        assert self.python is not None
        done = subprocess.run(
            [self.python, str(Path(__file__).with_name(program)), order],
            check=True,
            stdout=subprocess.PIPE,
            timeout=300,
        )
        return done.stdout


def named(python: str) -> PeerPython:
    return PeerPython(python)


def own_venv(folder: Path) -> PeerPython:
    """A new environment below `folder` with `requirements.txt` installed."""
    place = folder / "peers"
    python = str(place / "bin" / "python")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    try:
        for command in (
            [sys.executable, "-m", "venv", str(place)],
            [*install, "--requirement", str(REQUIREMENTS)],
        ):
            subprocess.run(
                command,
                check=True,
                capture_output=True,
                text=True,
                timeout=INSTALL_SECONDS,
            )
    except subprocess.CalledProcessError as error:
        words = (error.stderr or error.stdout).strip().splitlines() or [str(error)]
        return PeerPython(None, f"skipped: the peers were not installed: {words[-1]}")
    except (OSError, subprocess.TimeoutExpired) as error:
        return PeerPython(None, f"skipped: the peers were not installed: {error}")
    return PeerPython(python)
