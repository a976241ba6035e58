"""The folders of a home in which attempts find the files of earlier jobs.

They are copies, checked against what was collected, that only the owner can read: a
job that changes one, as it can, changes nothing that is kept. The folder goes with the
end of the attempt; one that a crash left is for the clean-up.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from typing import TYPE_CHECKING, NamedTuple

import trio

from forge_actors.domain.errors import StoreFailed
from forge_actors.domain.inputs import InputsMissing, means, missing
from forge_actors.runtime.homes import INPUTS
from forge_actors.runtime.kept_artifacts import files_of, kept, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from forge_actors.domain.artifacts import CollectedFile
    from forge_actors.domain.inputs import Input, InputsWanted
    from forge_actors.domain.launch import (
        Collected,
        Ending,
        ProcessIdentity,
        Receipt,
    )
    from forge_actors.domain.ports import RunningAttempt

    #: The number of the last attempt of a job, and what it told of its artifacts.
    Last = tuple[int, Collected | None]

#: Attempts whose inputs are copied at once: more make no disk faster, and threads are
#: needed by others.
AT_ONCE = 4
#: Bytes that are copied at once.
PIECE = 1 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def input_folder(home: str, job: str, attempt: int) -> str:
    """Where an attempt finds its inputs."""
    return f"{os.path.abspath(home)}/{INPUTS}/{job}.{attempt}"


class _Source(NamedTuple):
    """One input, and the attempt whose files it is."""

    input: Input
    attempt: int
    told: Collected | None


class InputFolders:
    """Those of one home; implements `domain.inputs.Inputs`."""

    def __init__(self, home: Path, last: Callable[[str], Last]) -> None:
        """`last` tells of the last attempt of a job, and raises InputsMissing."""
        self._home = os.path.abspath(home)
        self._last = last
        self._copying = trio.CapacityLimiter(AT_ONCE)

    async def place(self, wanted: InputsWanted) -> None:
        sources = [_Source(one, *self._last(one.job)) for one in wanted.inputs]
        try:
            async with self._copying:
                with trio.fail_after(wanted.seconds):
                    await trio.to_thread.run_sync(self._place, wanted, sources)
        except trio.TooSlowError:
            problem = f"its inputs took longer than {wanted.seconds:g} s to be placed"
            raise InputsMissing(problem) from None

    async def remove(self, folder: str) -> None:
        await trio.to_thread.run_sync(_discard, folder)

    def _place(self, wanted: InputsWanted, sources: list[_Source]) -> None:
        """In a thread of its own."""
        _discard(wanted.folder)  # of an attempt of that number that never began
        # Of a file that several patterns mean there is one copy.
        found = {
            os.path.join(source.input.folder, file.path): (source, file)
            for source in sources
            for file in self._files(source)
        }
        files = found.items()
        size = sum(file.bytes for _, (_, file) in files)
        if len(files) > wanted.files or size > wanted.bytes:
            raise InputsMissing(
                f"its inputs are {len(files)} files of {size} bytes, more than the"
                f" {wanted.files} files and {wanted.bytes} bytes that the settings"
                " artifacts.files and artifacts.bytes allow"
            )
        try:
            os.makedirs(os.path.dirname(wanted.folder), mode=0o700, exist_ok=True)
            os.mkdir(wanted.folder, mode=0o700)
            for path, (source, file) in files:
                self._copy(os.path.join(wanted.folder, path), source, file)
        except BaseException as error:
            _discard(wanted.folder)
            if isinstance(error, OSError):
                problem = f"its inputs cannot be placed: {error.strerror}"
                raise InputsMissing(problem) from None
            if isinstance(error, StoreFailed):
                raise InputsMissing(f"its inputs cannot be placed: {error}") from None
            raise

    def _files(self, source: _Source) -> Iterator[CollectedFile]:
        one = source.input
        found = kept(self._home, one.job, source.attempt, source.told)
        if (problem := missing(one, found)) is not None:
            raise InputsMissing(problem)
        try:
            files = files_of(self._home, one.job, source.attempt)
        except StoreFailed as error:
            raise InputsMissing(f"the artifacts of job {one.job}: {error}") from None
        for file in files:
            if one.pattern is None or means(one.pattern, file.path):
                yield file

    def _copy(self, path: str, source: _Source, file: CollectedFile) -> None:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        digest = hashlib.sha256()
        mode = 0o500 if file.executable else 0o400
        job, attempt = source.input.job, source.attempt
        with (
            opened(self._home, job, attempt, file) as read,
            open(
                path, "wb", buffering=0, opener=lambda p, _: os.open(p, _NEW, mode)
            ) as target,
        ):
            while piece := read(PIECE):
                trio.from_thread.check_cancelled()
                digest.update(piece)
                while piece:
                    piece = piece[target.write(piece) :]
        if digest.hexdigest() != file.sha256:
            raise StoreFailed(f"{file.path} of job {job} is not what was collected")


class AttemptWithInputs:
    """An attempt that has inputs; implements `domain.ports.RunningAttempt`."""

    def __init__(self, running: RunningAttempt, folder: str) -> None:
        self._running = running
        self._folder = folder

    @property
    def receipt(self) -> Receipt | None:
        return self._running.receipt

    async def started(self) -> ProcessIdentity | None:
        return await self._running.started()

    def once_settled(self, notify: Callable[[], object]) -> bool:
        return False  # more is to be done by the time it has ended

    async def exited(self) -> Receipt:
        """Its receipt, once its inputs are gone."""
        receipt = await self._running.exited()
        await trio.to_thread.run_sync(_discard, self._folder)
        return receipt

    def stop(self, *, grace: float | None = None, ending: Ending = "stop") -> None:
        self._running.stop(grace=grace, ending=ending)

    def pause(self) -> None:
        self._running.pause()

    def resume(self) -> None:
        self._running.resume()


def _discard(folder: str) -> None:
    """Whatever cannot be removed now is for the clean-up."""
    shutil.rmtree(folder, ignore_errors=True)
