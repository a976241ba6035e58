"""Several copies of the program at places of their own, and a manager that runs one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import forge_actors
from tests.acceptance.service import CALL_SECONDS, Done

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService

PACKAGE = Path(forge_actors.__file__).parent

#: Starts what `current` points to, and again each time it exits with 75.
MANAGER = """\
while :; do
    PYTHONPATH={current} {python} -m forge_actors serve --home {home} --ready-fd 3
    status=$?
    echo "$status" >> {statuses}
    [ "$status" = 75 ] || exit "$status"
done
"""


class Program:
    """A copy of the program; `other` content makes it a release of its own."""

    def __init__(self, root: Path, *, other: bool = False) -> None:
        self.root = root
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PACKAGE, root / "forge_actors", ignore=ignored)
        if other:
            (root / "forge_actors" / "other.py").touch()

    def __call__(
        self, service: LiveService, *words: str, status: int | None = 0
    ) -> Done:
        """Call its command line on the home of the service."""
        done = subprocess.run(
            [sys.executable, "-m", "forge_actors", *words, "--home", service.home],
            env={**os.environ, "PYTHONPATH": str(self.root)},
            cwd=service.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CALL_SECONDS,
            check=False,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        assert status in (None, done.returncode), f"{words}: {out}{err}"
        return Done(done.returncode, out, err, done.stdout)


class Manager:
    """Runs the service of a home and starts the next release when one hands over."""

    def __init__(self, service: LiveService, program: Program) -> None:
        self._service = service
        self._current = service.root / "current"
        self._current.symlink_to(program.root)
        self._statuses = service.root / "statuses"
        self._reading, writing = os.pipe()
        script = MANAGER.format(
            current=self._current,
            python=sys.executable,
            home=service.home,
            statuses=self._statuses,
        )
        with open(service.home / "service.log", "ab") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", f"exec 3>&{writing}; {script}"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[writing],
                cwd=service.root,
                start_new_session=True,
            )
        os.close(writing)

    @property
    def statuses(self) -> list[int]:
        """With what the services so far have ended."""
        if not self._statuses.exists():
            return []
        return [int(line) for line in self._statuses.read_text().split()]

    def wait_ready(self) -> None:
        """Until the next service is ready."""
        assert os.read(self._reading, 1), "the manager ended"
        self._service.find()

    def install(self, program: Program) -> None:
        """Have the next start be one of this program."""
        fresh = self._current.with_suffix(".new")
        fresh.symlink_to(program.root)
        fresh.replace(self._current)

    def wait(self) -> int:
        """Until it has ended by itself; with what the last service ended."""
        return self._process.wait(CALL_SECONDS)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._reading)
