"""The artifacts of jobs as a home keeps them, whether it is served or not.

Each attempt has a folder with a manifest; without that nothing of it counts, whatever
else is there. The files are named by numbers, and their paths are only text.
"""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from forge_actors.domain.artifacts import (
    MAX_MANIFEST,
    VERSION,
    ArtifactFile,
    Artifacts,
    CollectedFile,
    Manifest,
    check_path,
)
from forge_actors.domain.errors import NotFound, StoreFailed
from forge_actors.runtime.homes import ARTIFACTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from forge_actors.domain.launch import Collected

MANIFEST = "manifest.json"

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_manifest = msgspec.json.Decoder(Manifest)


def kept(home: str, job: str, attempt: int, told: Collected | None) -> Artifacts:
    """What is kept of an attempt that is over; `told` is what its receipt says."""
    try:
        manifest = _read(home, job, attempt)
    except StoreFailed as error:
        return Artifacts(attempt, "incomplete", error=str(error))
    if manifest is None:
        if told is not None and (told.error or told.unfinished):
            why = told.error or "the node agent ended while they were collected"
            return Artifacts(attempt, "incomplete", error=why)
        if told is None:
            why = "the attempt did not get so far"
            return Artifacts(attempt, "incomplete", error=why)
        return Artifacts(attempt, "removed")
    files = [
        ArtifactFile(each.path, each.bytes, each.sha256, each.executable)
        for each in manifest.files
    ]
    left_out = manifest.left_out
    return Artifacts(
        attempt,
        "partial" if left_out else "complete",
        files,
        sum(each.bytes for each in files),
        left_out,
        manifest.left_out_more,
    )


def as_json(found: Artifacts) -> dict[str, Any]:
    """The same as plain JSON values."""
    table: dict[str, Any] = msgspec.to_builtins(found)
    return table


class KeptFile:
    """One file that is kept, found when this is made."""

    def __init__(self, home: str, job: str, attempt: int, path: str) -> None:
        """
        Raises:
            NotFound: there is no such file. StoreFailed: it is not as it was collected.
        """
        manifest = _read(home, job, attempt)
        files = manifest.files if manifest is not None else ()
        found = next((each for each in files if each.path == path), None)
        if found is None:
            where = f"attempt {attempt} of job {job}"
            raise NotFound(f"no artifact of {where} is called {path!r}")
        self.file: CollectedFile = found
        self._place = home, job, attempt
        with self.opened():
            pass

    def opened(self) -> AbstractContextManager[Callable[[int], bytes]]:
        """See `opened`."""
        return opened(*self._place, self.file)


@contextmanager
def opened(
    home: str, job: str, attempt: int, wanted: CollectedFile
) -> Iterator[Callable[[int], bytes]]:
    """What reads the next bytes of a file that is kept, at most so many.

    Raises:
        StoreFailed: it is not as it was collected.
    """
    if not wanted.name.isdecimal():
        raise StoreFailed(f"the manifest names a file {wanted.name[:100]!r}")
    try:
        with _folder(home, job, attempt) as folder:
            fd = os.open(wanted.name, _FILE, dir_fd=folder)
    except OSError as error:
        problem = f"{wanted.path} cannot be read: {error.strerror}"
        raise StoreFailed(problem) from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size != wanted.bytes:
            raise StoreFailed(f"{wanted.path} is not what was collected")
        yield partial(os.read, fd)
    finally:
        os.close(fd)


def files_of(home: str, job: str, attempt: int) -> list[CollectedFile]:
    """The files that are kept of an attempt.

    Raises:
        StoreFailed: nobody can tell which.
    """
    manifest = _read(home, job, attempt)
    return [] if manifest is None else manifest.files


def _read(home: str, job: str, attempt: int) -> Manifest | None:
    """The manifest; None if there is none.

    Raises:
        StoreFailed: it cannot be read.
    """
    try:
        with _folder(home, job, attempt) as folder:
            fd = os.open(MANIFEST, _FILE, dir_fd=folder)
            with open(fd, "rb") as file:
                text = file.read(MAX_MANIFEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreFailed(f"the manifest cannot be read: {error.strerror}") from None
    try:
        manifest = _manifest.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise StoreFailed(f"the manifest cannot be read: {error}") from None
    if manifest.version != VERSION or len(text) > MAX_MANIFEST:
        raise StoreFailed("the manifest is of no version that is known here")
    for each in manifest.files:
        check_path(each.path)
    return manifest


@contextmanager
def _folder(home: str, job: str, attempt: int) -> Iterator[int]:
    """The folder of an attempt; no link leads to it."""
    held = [os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    try:
        for name in (ARTIFACTS, job, str(attempt)):
            held.append(os.open(name, _FOLDER, dir_fd=held[-1]))
        yield held[-1]
    finally:
        for fd in held:
            with suppress(OSError):
                os.close(fd)
