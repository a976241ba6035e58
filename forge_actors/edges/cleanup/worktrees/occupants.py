"""Which processes use a folder: they stand in it, run from it, or have files open."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Processes that are named.
MAX_NAMED = 5
#: Bytes that are read of what /proc tells of one process.
_MAX_TOLD = 4 << 20


def occupants(
    folders: Sequence[str], job: str | None = None, *, proc: str = "/proc"
) -> tuple[str, ...]:
    """The first processes that use one of these folders, or that belong to a job.

    Processes of others, of which nothing can be read, are not seen.
    """
    real = tuple(dict.fromkeys([*folders, *map(os.path.realpath, folders)]))
    if any(_is_in(place, real) for place in _own_places()):
        return (f"{os.getpid()} (this program runs from it)",)
    found = []
    for name in os.listdir(proc):  # noqa: PTH208
        if name.isdecimal() and _uses(f"{proc}/{name}", name, real, job):
            found.append(f"{name} ({_command(f'{proc}/{name}')})")
            if len(found) == MAX_NAMED:
                break
    return tuple(found)


def _own_places() -> Iterator[str]:
    """Where the program runs from that we are, and with us the service."""
    yield sys.prefix
    yield sys.executable
    yield os.path.abspath(__file__)


def _uses(process: str, pid: str, folders: tuple[str, ...], job: str | None) -> bool:
    for link in ("cwd", "exe", "root"):
        with suppress(OSError):
            if _is_in(os.readlink(f"{process}/{link}"), folders):
                return True
    own = pid == str(os.getpid())
    if not own and any(_is_in(path, folders) for path in _open_files(process)):
        return True
    if not own and any(_is_in(word, folders) for word in _program(process)):
        return True
    maps = _read(f"{process}/maps")
    if any(os.fsencode(f"{folder}/") in maps for folder in folders):
        return True
    if job is None:
        return False
    mark = f"FORGE_JOB_ID={job}".encode()
    return not own and mark in _read(f"{process}/environ").split(b"\0")


def _open_files(process: str) -> Iterator[str]:
    with suppress(OSError):
        for number in os.listdir(f"{process}/fd"):  # noqa: PTH208
            with suppress(OSError):
                yield os.readlink(f"{process}/fd/{number}")


def _program(process: str) -> Iterator[str]:
    """The program of a process, and the script that it runs if it is an interpreter."""
    words = _read(f"{process}/cmdline").split(b"\0")
    yield os.fsdecode(words[0])
    script = next((word for word in words[1:] if not word.startswith(b"-")), b"")
    yield os.fsdecode(script)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_TOLD)
    except OSError:
        return b""


def _command(process: str) -> str:
    return _read(f"{process}/comm").decode("utf-8", "backslashreplace").strip()


def _is_in(path: str, folders: tuple[str, ...]) -> bool:
    """Whether an absolute path is one of the folders, or below one."""
    path = path.removesuffix(" (deleted)")
    return any(path == each or path.startswith(f"{each}/") for each in folders)
