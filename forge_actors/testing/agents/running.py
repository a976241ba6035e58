"""Running an agent program by its adapter, without a service around it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.agent_verdicts import is_good
from forge_actors.domain.agents import AgentRun
from forge_actors.domain.launch import Receipt
from forge_actors.edges.agents.output import AgentOutput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from forge_actors.domain.agents import AgentAdapter, AgentReport, Usage
    from forge_actors.domain.launch import Ending

PIECE = 64 * 1024
STDERR_TAIL = 16 * 1024


class Ran:
    """One run: what it has printed so far and, at the end, what it came to."""

    def __init__(self, argv: tuple[str, ...], output: AgentOutput) -> None:
        self.argv = argv
        self.output = output
        self.stdout = b""
        self.stderr = b""
        self.status: int | None = None
        self._printed = trio.Event()
        self._process: trio.Process | None = None
        self._stopped = False

    async def printed(self, words: bytes) -> None:
        """Wait until it has printed this."""
        while words not in self.stdout:
            await self._printed.wait()

    def stop(self, number: int) -> None:
        """Send it a signal, as one who wants it to end."""
        assert self._process is not None, "it runs"
        if number == signal.SIGKILL:
            # All of it: what is started may only be what starts the program itself.
            os.killpg(self._process.pid, number)
            return
        self._stopped = True
        self.output.stopped(len(self.stdout))
        self._process.send_signal(number)

    @property
    def report(self) -> AgentReport:
        return self.output.end(self.stderr[-STDERR_TAIL:].decode("utf-8", "replace"))

    @property
    def receipt(self) -> Receipt:
        """Its end as a launcher tells it."""
        assert self.status is not None, "it has ended"
        ending: Ending = "stop" if self._stopped else "exit"
        died = self.status < 0
        return Receipt(
            job="job",
            attempt=1,
            fence=1,
            ending=ending,
            ended_at=time.time(),
            started_at=time.time(),
            exit_code=None if died else self.status,
            signal=signal.Signals(-self.status).name if died else None,
            agent=self.report,
        )

    @property
    def good(self) -> bool:
        """It did what it was to do."""
        return is_good(self.receipt, self.report)

    async def run(self, process: trio.Process, prompt: bytes) -> None:
        self._process = process
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            async with trio.open_nursery() as nursery, process.stdout:
                nursery.start_soon(_feed, process, prompt)
                nursery.start_soon(self._read_stderr, process.stderr)
                while piece := bytes(await process.stdout.receive_some(PIECE)):
                    self.stdout += piece
                    self.output.feed(piece)
                    self._printed.set()
                    self._printed = trio.Event()
                self.status = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                with trio.CancelScope(shield=True):
                    await process.wait()

    async def _read_stderr(self, stream: trio.abc.ReceiveStream) -> None:
        async with stream:
            while piece := await stream.receive_some(PIECE):
                self.stderr += bytes(piece)


@asynccontextmanager
async def running(
    adapter: AgentAdapter,
    program: Path,
    prompt: str,
    *,
    cwd: Path,
    env: Mapping[str, str],
    session: str | None = None,
    resume: str | None = None,
    arguments: tuple[str, ...] = (),
    before: Usage | None = None,
) -> AsyncIterator[Ran]:
    """Start it; the block may look at it and stop it, and ends when it has ended."""
    with TemporaryDirectory() as folder:
        telemetry = Path(folder) / "telemetry"
        run = AgentRun(
            str(program), arguments, session, resume, telemetry=str(telemetry)
        )
        async with _running(adapter, run, prompt, cwd, env, before) as ran:
            yield ran
        if telemetry.exists():
            ran.output.telemetry(telemetry.read_bytes())


@asynccontextmanager
async def _running(
    adapter: AgentAdapter,
    run: AgentRun,
    prompt: str,
    cwd: Path,
    env: Mapping[str, str],
    before: Usage | None,
) -> AsyncIterator[Ran]:
    made = adapter.invocation(run)
    zone = env.get("TZ")
    reader = adapter.reader(run, now=time.time(), zone=zone, before=before)
    known = run.resume or (run.session if run.session in made.argv else None)
    ran = Ran(made.argv, AgentOutput(adapter.name, reader, known))
    process = await trio.lowlevel.open_process(
        list(made.argv),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=cwd,
        env={**env, **made.env},
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ran.run, process, prompt.encode())
        yield ran


async def _feed(process: trio.Process, prompt: bytes) -> None:
    assert process.stdin is not None
    async with process.stdin:
        try:
            await process.stdin.send_all(prompt)
        except trio.BrokenResourceError:
            return  # it reads nothing, and that is its own matter


def environment(home: Path, **more: str) -> dict[str, str]:
    """One in which a program finds its interpreter, and nothing of ours."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", **more}
