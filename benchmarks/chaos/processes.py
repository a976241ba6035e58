"""The processes of a chaos run: the service under a manager, its agent, its jobs."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.service import PROGRAM, ServiceFailed, environment
from forge_actors.client import sync
from forge_actors.domain.errors import ForgeError

if TYPE_CHECKING:
    from collections.abc import Callable

#: Longest that a start may take before it counts as hanging.
START_SECONDS = 60.0
#: Starts until it is given up.
START_ATTEMPTS = 3
#: Longest that a process may take to end, once it was killed or has nothing to do.
END_SECONDS = 30.0
#: Longest that a service may be without an agent.
AGENT_SECONDS = 5.0


class Start(NamedTuple):
    """One start of the service; moments of the monotonic clock."""

    began: float
    ready: float

    @property
    def seconds(self) -> float:
        return self.ready - self.began


class Manager:
    """Starts the service of a home, and starts it again when it has ended."""

    def __init__(self, home: Path, say: Callable[[str], None]) -> None:
        self.home = home
        self.starts: list[Start] = []
        #: Exit statuses of services that ended by themselves.
        self.gave_up: list[int] = []
        #: Why starts came to nothing.
        self.failed_starts: list[str] = []
        #: Every agent there was, as far as it was seen.
        self.agents: set[int] = set()
        self._say = say
        self._child: subprocess.Popen[bytes] | None = None
        self._ready: int | None = None
        self._began = 0.0

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def begin(self) -> None:
        """Start it; `until_ready` waits for it."""
        reading, writing = os.pipe()
        self._began = time.monotonic()
        with (self.home / "service.log").open("ab") as log:
            words = ("serve", "--home", str(self.home), "--ready-fd", str(writing))
            self._child = subprocess.Popen(
                [*PROGRAM, *words],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[writing],
            )
        os.close(writing)
        self._ready = reading

    def until_ready(self) -> float:
        """The moment in which it answers requests.

        Raises:
            ServiceFailed: it ended first, or does not become ready.
        """
        assert self._ready is not None
        try:
            if not select.select([self._ready], [], [], START_SECONDS)[0]:
                raise ServiceFailed(f"it was not ready within {START_SECONDS:.0f} s")
            if not os.read(self._ready, 1):
                status = self._ended()
                raise ServiceFailed(f"serve ended with {status}: {self._last_words()}")
        finally:
            self._forget_ready()
        ready = time.monotonic()
        self.starts.append(Start(self._began, ready))
        self.agent()
        return ready

    def start(self) -> float:
        self.begin()
        return self.until_ready()

    def start_again(self) -> float:
        """The same, tried as often as a manager would.

        Raises:
            ServiceFailed: it never became ready.
        """
        self.begin()
        return self.ready_or_again()

    def ready_or_again(self) -> float:
        """The same, of a start that has begun."""
        for _ in range(START_ATTEMPTS - 1):
            try:
                return self.until_ready()
            except ServiceFailed as error:
                self.failed_starts.append(str(error))
                self.kill()
                self.begin()
        return self.until_ready()

    def kill(self) -> None:
        """End it as a crash would, ready or not."""
        assert self._child is not None
        self._child.kill()
        self._child.wait()
        self._forget_ready()

    def terminate(self) -> None:
        """End it as its manager does: by SIGTERM.

        Raises:
            ServiceFailed: it does not end, or not in order.
        """
        assert self._child is not None
        self._child.terminate()
        if (status := self._ended()) != 0:
            raise ServiceFailed(f"SIGTERM ended it with {status}: {self._last_words()}")

    def look(self) -> bool:
        """Start it again if it ended by itself; whether it had."""
        assert self._child is not None
        if self._child.poll() is None:
            return False
        self.gave_up.append(self._child.returncode)
        self._say(f"the service ended by itself: {self._last_words()}")
        self.start_again()
        return True

    def agent(self) -> int | None:
        """The agent's pid, as the home or else the service says."""
        with contextlib.suppress(OSError, ValueError, KeyError):
            record = json.loads((self.home / "agent.json").read_text())
            return self._seen(int(record["pid"]), int(record["start_ticks"]))
        with contextlib.suppress(ForgeError, KeyError, TypeError):
            status = sync.Service(str(self.home)).get("status")
            return self._seen(int(status["service"]["agent_pid"]), None)
        return None

    def wait_for_agent(self) -> int | None:
        """The same; a service that runs has one again a moment after it ended."""
        last = time.monotonic() + AGENT_SECONDS
        while (agent := self.agent()) is None and time.monotonic() < last:
            if self._child is None or self._child.poll() is not None:
                break
            time.sleep(0.02)
        return agent

    def _seen(self, pid: int, ticks: int | None) -> int | None:
        if ticks is not None and start_ticks(pid) != ticks:
            return None
        self.agents.add(pid)
        return pid

    def stop(self) -> list[str]:
        """Stop it, when nothing runs; what is wrong with how it and its agent end."""
        agent = self.agent()
        ended = [agent] if agent is not None else []
        asked = subprocess.run(
            [*PROGRAM, "stop", "--home", str(self.home)],
            check=False,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=END_SECONDS,
        )
        wrong = []
        if asked.returncode != 0:
            wrong.append(f"stop ended with {asked.returncode}: {asked.stderr.strip()}")
            self.kill()
        elif (status := self._ended()) != 0:
            wrong.append(f"the service that was stopped ended with {status}")
        wrong += [
            f"the agent {pid} is there {END_SECONDS:.0f} s after the stop"
            for pid in ended
            if not wait_until_ended(pid, END_SECONDS)
        ]
        return wrong

    def clear(self) -> None:
        """End whatever is left of all of them."""
        if self._child is not None and self._child.poll() is None:
            self.kill()
        self._forget_ready()
        agent = self.agent()
        for pid in (*([agent] if agent is not None else []), *marked(self.home)):
            kill(pid)

    def _ended(self) -> int:
        assert self._child is not None
        return self._child.wait(END_SECONDS)

    def _forget_ready(self) -> None:
        if self._ready is not None:
            os.close(self._ready)
            self._ready = None

    def _last_words(self) -> str:
        lines = (self.home / "service.log").read_text(errors="replace").splitlines()
        return lines[-1] if lines else "it said nothing"


def marked(home: Path) -> list[int]:
    """The processes of jobs of this home, by the mark in their environment."""
    mark = f"FORGE_CONTROLLER_HOME={home}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            variables = (folder / "environ").read_bytes().split(b"\0")
            # The service itself may have it too; only jobs have an id.
            jobs = any(one.startswith(b"FORGE_JOB_ID=") for one in variables)
            if jobs and mark in variables:
                found.append(int(folder.name))
    return found


def described(pid: int) -> str:
    """A process for a person: `pid words`, and whose job it is."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        [job] = [one for one in variables if one.startswith(b"FORGE_JOB_ID=")]
        return f"{pid} {words.decode(errors='replace')}({job.decode()})"
    return f"{pid}, which has ended now"


def start_ticks(pid: int) -> int | None:
    """When a process began; None if there is none, or only its exit status is left."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def wait_until_ended(pid: int, seconds: float) -> bool:
    """Wait for the end of a process, of whomever it is a child."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([fd], [], [], seconds)[0])
    finally:
        os.close(fd)
