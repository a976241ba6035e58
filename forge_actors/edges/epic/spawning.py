"""Workers of EPIC issues as children of this process, which they outlive.

A worker has a session of its own, so that the keys of a terminal reach it only through
us. It inherits the two locks and its streams, and nothing else.
"""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.places import log, path, within
from forge_actors.domain.epic.workers import NotStarted
from forge_actors.edges.epic.ends import ended, start_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from forge_actors.domain.epic.places import Place
    from forge_actors.domain.epic.workers import WorkerOrder
    from forge_actors.edges.epic.root import FolderRoot

#: Bytes that the log of one worker has at most when it is opened.
LOG_LIMIT = 16 * 1024 * 1024
#: Seconds between two looks at a process where the system tells of no end.
WITHOUT = 0.1


class SpawnedWorkers:
    """The port `Workers`. `command` makes the arguments of a worker."""

    def __init__(
        self,
        root: FolderRoot,
        checkout: str,
        environment: Mapping[str, str],
        command: Callable[[WorkerOrder], Sequence[str]],
        folder: Place = (),
    ) -> None:
        """`folder` keeps the logs of issues apart from those of other graphs."""
        self._folder = folder
        self._root = root
        self._checkout = checkout
        self._environment = dict(environment)
        self._command = command

    async def start(self, order: WorkerOrder) -> SpawnedWorker:
        """See the port."""
        claim = order.claim
        of_issue = log(claim.run_key.issue_number, claim.generation)
        place = within(of_issue, self._folder)
        try:
            output = self._root.append(place, LOG_LIMIT)
        except StateError as error:
            raise NotStarted(str(error), no_process=True) from None
        spawn = partial(
            subprocess.Popen,
            list(self._command(order)),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(order.controller, order.run),
            cwd=self._checkout,
            env=self._environment,
            start_new_session=True,
        )
        try:
            process = await trio.to_thread.run_sync(spawn)
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            raise NotStarted(str(error)) from None
        finally:
            os.close(output)
        return SpawnedWorker(process, path(self._root.path, place))


class SpawnedWorker:
    """The port `Worker`. It is left alone when this process ends."""

    def __init__(self, process: subprocess.Popen[str], log: str) -> None:
        self.pid = process.pid
        self.log = log
        self.start_time = start_time(process.pid)
        self._process = process

    def interrupt(self) -> None:
        """See the port."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)

    async def wait(self) -> int | None:
        """See the port."""
        process = self._process
        try:
            await ended(self.pid)
            while process.poll() is None:
                await trio.sleep(WITHOUT)
            return process.returncode
        finally:
            if process.returncode is None:
                # It goes on, and that nobody waits for it any more is no mistake.
                process.returncode = 0
