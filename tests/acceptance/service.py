"""A real service for the tests here: its home, its repositories, its command line."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import sysconfig
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from forge_actors.client.sync import Service as Connection
from forge_actors.runtime.homes import LOCK_FILE
from tests.acceptance import inside, loaded
from tests.acceptance.bench import PATIENCE, Bench, kill, wait_until_ended

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROGRAM = str(Path(sysconfig.get_path("scripts")) / "forge-actors")
#: Longest that one call of the command line may take.
CALL_SECONDS = 60.0

#: To load what agents are served by takes longer than all the rest of a start, so only
#: those tests have it that are about it.
WITHOUT_AGENTS = "[gateway]\nmcp = false\n"
#: Whatever else the machine does, it is under no pressure.
SETTINGS = f"""\
[pressure]
min_free_memory_mb = 64
max_load_per_cpu = 10000.0
pressure_workers = 64
{WITHOUT_AGENTS}"""

_MAIN = "from forge_actors.cli.main import main\nsys.exit(main())"

Json = dict[str, Any]


class Done(NamedTuple):
    """A call of the command line that ended."""

    status: int
    out: str
    err: str
    raw: bytes


class Entry(NamedTuple):
    """One line of the event log."""

    seq: int
    kind: str
    at: float
    job: str | None
    data: Json


def _with(settings: str) -> str:
    """The usual settings, and these."""
    if "[gateway]\n" not in settings:
        return SETTINGS + settings
    if "mcp" not in settings:
        settings = settings.replace("[gateway]\n", WITHOUT_AGENTS)
    return SETTINGS.replace(WITHOUT_AGENTS, "") + settings


class LiveService(Bench):
    """A service that runs, with the verbs that tests use most."""

    def __init__(self, settings: str = "") -> None:
        super().__init__()
        self.home = self.root / "home"
        self.home.mkdir(mode=0o700)
        self.write_settings(_with(settings))
        self.pid = 0
        self.agent_pid = 0
        self._child: subprocess.Popen[bytes] | None = None

    def write_settings(self, text: str) -> None:
        """Exchange the file as a whole: a service may read it at any moment."""
        fresh = self.root / "settings.new"
        fresh.write_text(text)
        fresh.replace(self.home / "settings.toml")

    # -- its life --------------------------------------------------------------------

    def start(self) -> None:
        """Start it as `serve --detach` does, and wait until it is ready."""
        self._let_go()
        if loaded.is_possible():
            self.pid = loaded.start(self.home)
        else:
            self.pid = int(self.cli("serve", "--detach", status=0).out)
        self.find()

    def _let_go(self) -> None:
        """Wait until nobody has the home any more. A program that was being started
        for a service may have it for a moment longer than the service that was killed.
        """
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(self.home / LOCK_FILE, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
            finally:
                os.close(lock)

    def find(self) -> None:
        """Learn which processes serve the home now."""
        found = self.json("status")["service"]
        self.pid, self.agent_pid = found["pid"], found["agent_pid"]

    def start_patched(self, statements: str) -> None:
        """Start it with something in its program changed."""
        reading, writing = os.pipe()
        code = f"import sys\n{statements}\n{_MAIN}"
        words = ["serve", "--home", str(self.home), "--ready-fd", str(writing)]
        with open(self.home / "service.log", "ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-c", code, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=[writing],
                cwd=self.root,
            )
        os.close(writing)
        with open(reading, "rb") as ready:
            assert ready.read(1), (self.home / "service.log").read_text()
        self.find()

    def start_refused(self, statements: str) -> Done:
        """How a start ends that cannot succeed, with something else in its program."""
        words = [sys.executable, "-c", f"import sys\n{statements}\n{_MAIN}", "serve"]
        done = subprocess.run(
            [*words, "--home", self.home],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=CALL_SECONDS,
            check=False,
            cwd=self.root,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        return Done(done.returncode, out, err, done.stdout)

    def kill(self) -> None:
        """End the service as a crash would."""
        kill(self.pid)
        assert wait_until_ended(self.pid)
        if self._child is not None:
            self._child.wait()

    def crash(self) -> None:
        """End the service and its agent, as a crash of the machine would."""
        os.kill(self.pid, signal.SIGSTOP)  # it starts no other agent
        kill(self.agent_pid)
        self.kill()
        assert wait_until_ended(self.agent_pid)

    def terminate(self) -> None:
        """End the service alone, in order; what runs goes on."""
        os.kill(self.pid, signal.SIGTERM)
        assert wait_until_ended(self.pid), "the service did not stop"

    def end(self) -> None:
        """End the service with its jobs, in order; nothing is left."""
        self.cli("stop", "--jobs", status=0)
        assert wait_until_ended(self.pid)
        assert wait_until_ended(self.agent_pid), "the agent is left"

    def close(self) -> None:
        with contextlib.suppress(Exception):
            if self.pid and not wait_until_ended(self.pid, 0):
                body = {"jobs": True}
                Connection(str(self.home)).post("stop", body=body)
                wait_until_ended(self.pid, 3)
        for pid in (self.pid, self.agent_pid):
            if pid and not wait_until_ended(pid, 0.2):
                kill(pid)
        if self._child is not None:
            self._child.wait()
        super().close()

    # -- its verbs -------------------------------------------------------------------

    def cli(
        self,
        *words: str | bytes | Path,
        status: int | None = None,
        cwd: Path | None = None,
        stdin: bytes | None = None,
    ) -> Done:
        """Call the command line on this home: the installed one, where that matters."""
        all_words = ("--home", self.home, *words)
        if cwd is not None or not inside.is_possible(words[0]):
            return call(*all_words, status=status, cwd=cwd, stdin=stdin)
        return done(*inside.run(all_words, stdin or b""), words, status)

    def json(self, *words: str | Path) -> Any:
        return json.loads(self.cli(*words, "--json", status=0).out)

    def add(self, name: str) -> Path:
        """A new repository that the service knows under this name."""
        place = self.repository(name)
        self.cli("repo", "add", place, status=0)
        return place

    def submit(self, *words: str | bytes | Path) -> str:
        """The id of a new job."""
        return self.cli("submit", *words, status=0).out.strip()

    def bash(self, repo: str, script: str, *options: str) -> str:
        return self.submit("--repo", repo, *options, "--", "bash", "-c", script)

    def batch(self, jobs: Sequence[Json]) -> list[str]:
        lines = "\n".join(map(json.dumps, jobs)).encode()
        return self.cli("submit", "--batch", "-", status=0, stdin=lines).out.split()

    def wait(self, *jobs: str, seconds: float = PATIENCE) -> list[Json]:
        """Wait for the jobs' ends; how they are then."""
        done = self.cli("wait", "--timeout", f"{seconds}s", "--json", *jobs)
        answer = json.loads(done.out)
        assert not answer["timed_out"], [
            (job["id"], job["state"], job["waiting"]) for job in answer["jobs"]
        ]
        found: list[Json] = answer["jobs"]
        return found

    def end_of(self, job: str, seconds: float = PATIENCE) -> Json:
        return self.wait(job, seconds=seconds)[0]

    def show(self, job: str) -> Json:
        found: Json = self.json("show", job)
        return found

    def why(self, job: str) -> str:
        return self.cli("why", job, status=0).out

    def log(self, job: str, *options: str) -> bytes:
        return self.cli("logs", *options, job, status=0).raw

    def events(self) -> list[Entry]:
        """The whole event log, oldest first."""
        entries: list[Entry] = []
        while True:
            after = entries[-1].seq if entries else 0
            page = list(self._entries(after=after, limit=1000, follow=0))
            entries += page
            if len(page) < 1000:
                return entries

    def pid_of(self, job: str) -> int:
        """The first process of a job; that it runs is saved from here on.

        What a job does itself may be seen before.
        """
        pid = self.until(job, "job_running").data["pid"]
        assert isinstance(pid, int)
        return pid

    def until(self, job: str | None, kind: str) -> Entry:
        """Follow the event log from its start until this happens to the job, or to
        the service itself."""
        for entry in self.follow():
            if (entry.job, entry.kind) == (job, kind):
                return entry
        raise AssertionError(f"the event log ended before {job} had its {kind}")

    def follow(self) -> Iterator[Entry]:
        """The whole event log, and what is added to it as it comes."""
        return self._entries(after=0, limit=1000, follow=1)

    def _entries(self, **query: int) -> Iterator[Entry]:
        connection = Connection(str(self.home))
        rest = b""
        for piece in connection.stream("GET", ("events",), query=list(query.items())):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                found = json.loads(line)
                at = datetime.fromisoformat(found["at"]).timestamp()
                seq, kind = found["seq"], found["kind"]
                yield Entry(seq, kind, at, found["job"], found["data"])


def call(
    *words: str | bytes | Path,
    status: int | None = None,
    cwd: Path | None = None,
    stdin: bytes | None = None,
) -> Done:
    """Call the installed command line."""
    ended = subprocess.run(
        [PROGRAM, *words],
        input=b"" if stdin is None else stdin,
        capture_output=True,
        timeout=CALL_SECONDS,
        check=False,
        cwd=cwd,
    )
    return done(ended.returncode, ended.stdout, ended.stderr, words, status)


def done(
    status: int,
    out: bytes,
    err: bytes,
    words: Sequence[str | bytes | Path],
    wanted: int | None,
) -> Done:
    """A call that ended as it was wanted to, if anything was wanted."""
    told, failed = (part.decode(errors="replace") for part in (out, err))
    assert wanted in (None, status), f"{words}: {status} {told}{failed}"
    return Done(status, told, failed, out)


@contextlib.contextmanager
def started(
    *words: str | Path, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The command line in a session of its own, as a terminal would start it."""
    process = subprocess.Popen(
        [PROGRAM, *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=cwd,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


def finished(process: subprocess.Popen[bytes], seconds: float = PATIENCE) -> Done:
    """The end of what was `started`."""
    out, err = process.communicate(timeout=seconds)
    return Done(process.returncode, out.decode(), err.decode(), out)
