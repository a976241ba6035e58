"""Which build of the program this is, and which one the home lets serve it.

The active release of a home is one small file. Whoever changes it writes another one
beside it and puts that in its place, so a reader sees the old one or the new one.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

import msgspec

import forge_actors
from forge_actors.domain.errors import InvalidInput, ReleaseDamaged, ReleaseRefused
from forge_actors.domain.releases import ActiveRelease, Release, at_start

if TYPE_CHECKING:
    from collections.abc import Iterator

RELEASE_FILE = "release.json"
LOCK_FILE = "release.lock"
#: Bytes of the file; a longer one is something else.
MAX_FILE = 64 * 1024
#: What of the installed files makes the release what it is.
CONTENTS = (".py", ".sql")

_decode = msgspec.json.Decoder(ActiveRelease, strict=True).decode


def this_release(package: Path | None = None) -> Release:
    """The release of the program that runs, from the files as they are now."""
    root = os.path.realpath(package or Path(forge_actors.__file__).parent)
    digest = sha256()
    for name in sorted(_names(root, "")):
        with open(os.path.join(root, name), "rb") as file:
            content = file.read()
        # Each with its length, so that no two sets of files read the same.
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    # A name that is no text can be written down only like this.
    path = os.fsencode(root).decode("utf-8", "backslashreplace")
    return Release(forge_actors.__version__, digest.hexdigest(), path)


def _names(root: str, below: str) -> Iterator[str]:
    with os.scandir(os.path.join(root, below)) as entries:
        for entry in entries:
            name = f"{below}/{entry.name}" if below else entry.name
            if entry.is_dir():
                yield from _names(root, name)
            elif name.endswith(CONTENTS):
                yield name


def read_active(home: Path) -> ActiveRelease | None:
    """The active release of a home; None if none was ever made that.

    Raises:
        ReleaseDamaged: the file is not one that we wrote.
    """
    path = home / RELEASE_FILE
    try:
        with open(path, "rb", opener=_careful) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _damaged(path, "it is no regular file")
            if status.st_uid != os.geteuid() or status.st_mode & 0o022:
                raise _damaged(path, "others can write to it")
            content = file.read(MAX_FILE + 1)
        if len(content) > MAX_FILE:
            raise _damaged(path, f"it has more than {MAX_FILE} bytes")
        return _decode(content)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _damaged(path, error.strerror or str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _damaged(path, str(error)) from None


def _careful(path: str, flags: int) -> int:
    # A pipe that somebody put there would be waited for.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _damaged(path: Path, problem: str) -> ReleaseDamaged:
    return ReleaseDamaged(
        f"{path} does not say which release is the active one: {problem}; move it away"
        " and make the one that is to serve active: forge-actors release activate"
    )


def activate(home: Path, mine: Release) -> tuple[ActiveRelease, bool]:
    """Make a release the active one, and say whether it was not before.

    Raises:
        ReleaseDamaged: what is active now cannot be read.
        InvalidInput: the home takes no files; nothing was changed then.
    """
    with _alone(home):
        active = read_active(home)
        if active is not None and active.release == mine:
            return active, False
        return _replace(home, active, mine), True


def may_serve(home: Path, mine: Release) -> tuple[ActiveRelease, bool]:
    """What is active in a home that a release begins to serve, and whether that is new.

    Raises:
        ReleaseRefused: another release is the active one, and is still there.
        ReleaseDamaged: what is active cannot be read.
        InvalidInput: the home takes no files.
    """
    with _alone(home):
        active = read_active(home)
        others = active is not None and os.path.isdir(active.release.path)
        verdict = at_start(active, mine, others_exist=others)
        if active is None or verdict == "replaces":
            return _replace(home, active, mine), True
        if verdict == "refused":
            raise ReleaseRefused(
                f"{active.release} is the active release of {home}, and this is"
                f" {mine}; to change to this one: forge-actors release activate"
            )
        return active, False


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """While the block lasts nobody else changes what is active."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        lock = os.open(home / LOCK_FILE, flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
    except OSError as error:
        place = error.filename or home
        raise InvalidInput("home", f"{place}: {error.strerror}") from None


def _replace(home: Path, old: ActiveRelease | None, mine: Release) -> ActiveRelease:
    active = ActiveRelease(
        format=1,
        revision=1 if old is None else old.revision + 1,
        token_digest=sha256(secrets.token_bytes(32)).hexdigest(),
        activated_at=time(),
        release=mine,
        previous=None if old is None else old.release,
    )
    path = home / RELEASE_FILE
    fresh = home / f"{RELEASE_FILE}.new"
    try:
        with open(fresh, "wb", opener=_private) as file:
            file.write(msgspec.json.encode(active) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise
    folder = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return active


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
