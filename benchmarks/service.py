"""A real service on a home of its own, as a user would start it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.wire import Client
from forge_actors.client import sync
from forge_actors.client.home import socket_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROGRAM = (sys.executable, "-m", "forge_actors")
START_SECONDS = 120.0
STOP_SECONDS = 30.0
REGISTER_AT_ONCE = 4

#: A job that does nothing for longer than any measurement takes.
HOLDER = ("/bin/sleep", "600")

#: Limits that make the runs comparable: memory and load never hold a job back.
SETTINGS = """\
[limits]
workers = {workers}
active_repositories = {repositories}

[pressure]
min_free_memory_mb = 64
max_load_per_cpu = 10000.0
"""


class Service:
    """A running service; every number comes through its socket or from /proc."""

    def __init__(self, home: Path) -> None:
        self.home = home
        #: For calls that are not timed.
        self.api = sync.Service(str(home))
        self.status: dict[str, Any] = self.api.get("status")

    @property
    def socket(self) -> str:
        return socket_path(str(self.home))

    def client(self) -> Client:
        """For calls that are timed."""
        return Client(self.socket)

    @property
    def pid(self) -> int:
        return int(self.status["service"]["pid"])

    @property
    def agent_pid(self) -> int | None:
        pid = self.status["service"].get("agent_pid")
        return None if pid is None else int(pid)

    @property
    def synchronous(self) -> str | None:
        value = self.status.get("store", {}).get("synchronous")
        return None if value is None else str(value)

    @property
    def jobs(self) -> int:
        """How many jobs it has now, in whatever state."""
        counts: dict[str, int] = self.api.get("status")["counts"]
        return sum(counts.values())

    @property
    def pids(self) -> list[int]:
        """The service and, if it has one, its agent."""
        return [pid for pid in (self.pid, self.agent_pid) if pid is not None]

    def add_repositories(self, paths: Sequence[Path]) -> list[str]:
        """Register the repositories under their folders' names; those names."""

        def add(path: Path) -> str:
            body = {"path": str(path), "name": path.name}
            self.api.post("repositories", body=body)
            return path.name

        with ThreadPoolExecutor(REGISTER_AT_ONCE) as callers:
            return list(callers.map(add, paths))

    def pause(self) -> None:
        """Start nothing more, until `resume`."""
        self.api.post("pause", body={"scope": "all", "jobs": False})

    def submit(self, jobs: Sequence[dict[str, Any]]) -> list[str]:
        """The ids of the accepted jobs."""
        answer = self.api.post("jobs", body={"jobs": list(jobs)})
        return [job["id"] for job in answer["jobs"]]


def environment() -> dict[str, str]:
    """Ours without FORGE_*, and with this source tree importable."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FORGE_")}
    # As one that is installed, it is not compiled anew by each process.
    clean.pop("PYTHONDONTWRITEBYTECODE", None)
    root = str(Path(__file__).parent.parent)
    before = clean.get("PYTHONPATH")
    return clean | {"PYTHONPATH": f"{root}:{before}" if before else root}


def new_home(folder: Path, *, workers: int = 4, repositories: int = 20) -> Path:
    """A new home below `folder` with default durability."""
    home = Path(tempfile.mkdtemp(prefix="home-", dir=folder))
    settings = SETTINGS.format(workers=workers, repositories=repositories)
    (home / "settings.toml").write_text(settings)
    return home


@contextlib.contextmanager
def running(home: Path) -> Iterator[Service]:
    """A service of the home that answers requests, then its end."""
    service = start(home)
    try:
        yield service
    finally:
        stop(service)


@contextlib.contextmanager
def killed(home: Path) -> Iterator[Service]:
    """The same, but its end is that of a crash: jobs and agent are left alone."""
    service = start(home)
    try:
        yield service
        process = os.pidfd_open(service.pid)
        signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [])
        os.close(process)
    except BaseException:
        stop(service)
        raise


def start(home: Path) -> Service:
    """A service of the home that answers requests.

    Raises:
        ServiceFailed: it does not start.
    """
    with (home / "serve.err").open("w+") as errors:
        started = subprocess.run(
            [*PROGRAM, "serve", "--home", str(home), "--detach"],
            check=False,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            timeout=START_SECONDS,
        )
        if started.returncode != 0:
            errors.seek(0)
            last = errors.read().strip().splitlines()[-1:]
            raise ServiceFailed(f"serve ended with {started.returncode}: {last}")
    return Service(home)


@contextlib.contextmanager
def running_service(
    folder: Path, *, workers: int = 4, repositories: int = 20
) -> Iterator[Service]:
    """A service of a new home, then its end."""
    home = new_home(folder, workers=workers, repositories=repositories)
    with running(home) as service:
        yield service


class ServiceFailed(Exception):
    """The service did not start, or did not do what was measured."""


def stop(service: Service) -> None:
    """End the service, its jobs and its agent; by SIGTERM if asking does not help.

    Raises:
        ServiceFailed: one of them had to be killed.
    """
    watched: list[tuple[int, int]] = []
    for pid in service.pids:
        with contextlib.suppress(ProcessLookupError):
            watched.append((pid, os.pidfd_open(pid)))
    try:
        asked = subprocess.run(
            [*PROGRAM, "stop", "--jobs", "--home", str(service.home)],
            check=False,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=STOP_SECONDS,
        )
        patience = STOP_SECONDS if asked.returncode == 0 else 0.0
        killed = [pid for pid, pidfd in watched if not end(pidfd, patience)]
    finally:
        for _, pidfd in watched:
            os.close(pidfd)
    if killed:
        raise ServiceFailed(f"these did not end when asked to: {killed}")


def end(pidfd: int, patience: float) -> bool:
    """Wait for the end, then ask for it; False if the process had to be killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if select.select([pidfd], [], [], patience)[0]:
            return True
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, number)
        patience = STOP_SECONDS
    return False
