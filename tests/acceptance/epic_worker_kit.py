"""A repository with an issue that was admitted, and workers for it as real processes.

The test plays the scheduler: it holds both locks, writes the records and starts the
worker as a scheduler does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.epic import places
from forge_actors.domain.epic.admitted import Admitted
from forge_actors.domain.epic.records import (
    Admission,
    Binding,
    Claim,
    EngineState,
    EpicRef,
    RunKey,
    assignment,
    decode,
)
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.runtime.epic_place import locks
from forge_actors.runtime.epic_worker import WorkerOptions, work_here
from tests.acceptance.bench import contents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.epic.ports import RunLock

ISSUE, EPIC = 12, EpicRef(7, 9007)
KEY = RunKey(101, ISSUE)
URL = "https://github.com/octo/demo/issues/12"
NOW = "2026-11-30T18:00:00Z"
DIGEST = f"sha256:{'0' * 64}"
INVOCATION = "i-0123456789"
#: No load of this machine holds the phases back.
CALM = "[pressure]\nmax_load_per_cpu = 1000000.0\nmin_free_memory_mb = 64\n"
SECONDS = 60.0


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


class Bench:
    """One repository, its records, and a scheduler's hold on it."""

    def __init__(self, folder: Path, inside: Place = ()) -> None:
        self.folder = folder
        self.inside = inside
        self.checkout = folder / "app"
        self.checkout.mkdir(parents=True)
        git(self.checkout, "init", "-q", "-b", "main")
        git(self.checkout, "commit", "-q", "--allow-empty", "-m", "begin")
        self.common = self.checkout / ".git"
        self.config = folder / "epic.toml"
        self.home = folder / "home"
        #: Where phases write what they did.
        self.trace = folder / "trace"
        self.root = FolderRoot(str(self.common))
        self.namespaces = FileNamespaces(self.root, inside)
        self.locks = locks(self.root, inside)
        self.worktree = self.path(places.worktree(ISSUE))
        self.generation = 0

    def settings(self, **phases: str) -> None:
        """Phases as shell scripts, and `more`, lines of the table itself."""
        more = phases.pop("more", "")
        lines = [CALM, "[epic]", more]
        for phase, script in phases.items():
            traced = f"echo {phase} >> {self.trace}; {script}"
            lines.append(f"[epic.phases.{phase}]")
            lines.append(f"argv = ['sh', '-c', '''{traced}''']")
        self.config.write_text("\n".join(lines))

    def path(self, place: Place) -> Path:
        return self.common.joinpath(*places.within(place, self.inside))

    def saved(self) -> bytes | None:
        """The state as it is on the disk."""
        return self.root.read(places.within(places.state(ISSUE), self.inside), 1 << 20)

    @property
    def traced(self) -> list[str]:
        return self.trace.read_text().split() if self.trace.exists() else []

    @property
    def state(self) -> EngineState:
        data = self.saved()
        assert data is not None
        return decode(EngineState, data)

    def files(self) -> dict[str, bytes]:
        """Everything that is kept of EPIC runs, but the output of workers."""
        return {
            str(path): held
            for path, held in contents(self.common / "forge-actors")
            if "workers" not in path.parts
        }

    def gate(self, name: str) -> Gate:
        return Gate(self.folder / name)

    def log(self) -> str:
        path = self.path(places.log(ISSUE, self.generation))
        return path.read_text() if path.exists() else ""

    async def work_here(self, **more: object) -> int:
        """A worker within this process: its exit status, or what it raises."""
        controller = self.locks.take_controller()
        try:
            run = self.locks.take_run(ISSUE)
            try:
                claim = self.open_claim(run)
                given = Admitted(
                    EPIC.number, ISSUE, claim.claim_id, claim.generation, INVOCATION
                )
                options = WorkerOptions(
                    checkout=str(self.checkout),
                    config=str(self.config),
                    given=structs.replace(given, **more),
                    controller_fd=controller.share(),
                    run_fd=run.hand_off(),
                    folder=self.inside,
                )
                return await work_here(options, str(self.home))
            finally:
                run.close()
        finally:
            controller.close()

    @contextmanager
    def admitted(self, **more: object) -> Iterator[Worker]:
        """A worker that was just started, as the last claim of the issue says."""
        controller = self.locks.take_controller()
        try:
            run = self.locks.take_run(ISSUE)
            try:
                claim = self.open_claim(run)
                worker = self._start(controller.share(), run.hand_off(), claim, more)
            finally:
                run.close()
        finally:
            controller.close()
        try:
            yield worker
        finally:
            worker.end()

    def open_claim(self, run: RunLock) -> Claim:
        namespace = self.namespaces.read(run, ISSUE)
        if namespace.binding is None:
            binding = Binding(
                run_key=KEY,
                issue_id=9012,
                owner="octo",
                name="demo",
                epic=EPIC,
                worktree=str(self.worktree),
                created_at=NOW,
            )
            self.namespaces.bind(run, binding)
            told = assignment(KEY, 9012, URL, "Say hello", "In a file.\n\x1b[31mred")
            self.namespaces.assign(run, told)
            namespace = self.namespaces.read(run, ISSUE)
        self.generation = namespace.next_generation
        before = namespace.open_claim
        claim = Claim(
            claim_id=f"c-00000000{self.generation}",
            generation=self.generation,
            kind="start" if namespace.saved is None else "resume",
            run_key=KEY,
            issue_id=9012,
            epic=EPIC,
            invocation_id=INVOCATION,
            admission=Admission(DIGEST, DIGEST, NOW),
            state_ref=namespace.state_ref,
            supersedes=None if before is None else before.ref,
            opened_at=NOW,
        )
        self.namespaces.open_claim(run, claim, before)
        return claim

    def _start(
        self, controller: int, run: int, claim: Claim, more: dict[str, object]
    ) -> Worker:
        options = {
            "checkout": str(self.checkout),
            "config": str(self.config),
            "epic": EPIC.number,
            "issue": ISSUE,
            "claim": claim.claim_id,
            "generation": claim.generation,
            "invocation": claim.invocation_id,
            "controller-fd": controller,
            "run-fd": run,
            "home": str(self.home),
            "folder": "/".join(self.inside),
            **more,
        }
        if options.pop("swapped", False):
            options |= {"controller-fd": run, "run-fd": controller}
        words = [
            f"--{name}" if value is True else f"--{name}={value}"
            for name, value in options.items()
        ]
        place = places.within(places.log(ISSUE, claim.generation), self.inside)
        output = self.root.append(place, 1 << 20)
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "forge_actors", "epic-worker", *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(controller, run),
                cwd=self.checkout,
                start_new_session=True,
            )
        finally:
            os.close(output)
        return Worker(process)


class Gate:
    """Where a phase waits until the test has heard of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)

    async def reached(self) -> str:
        """Return once a phase has written to it: what it wrote."""
        with trio.fail_after(SECONDS):
            return await trio.to_thread.run_sync(
                self.path.read_text, abandon_on_cancel=True
            )


async def gone(pid: int) -> None:
    """Wait until a process that is no child of ours has ended."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with trio.fail_after(SECONDS):
            await trio.lowlevel.wait_readable(handle)
    finally:
        os.close(handle)


class Worker:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    async def wait(self) -> int:
        """Its exit status."""
        with trio.fail_after(SECONDS):
            return await trio.to_thread.run_sync(
                self.process.wait, abandon_on_cancel=True
            )

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        self.process.kill()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
