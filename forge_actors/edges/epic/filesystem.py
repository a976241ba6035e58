"""Whether locks hold where a repository is: what is mounted there, and a trial.

The table of mounts is Linux's. Elsewhere the kind of the file system is not asked for,
and the trial alone decides: it finds locks that are ignored or that nobody inherits,
and not those that other machines do not see.
"""

from __future__ import annotations

import os
import secrets
import select
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from forge_actors.domain.epic.errors import StateError, UnsupportedFilesystem
from forge_actors.domain.epic.filesystems import problem
from forge_actors.edges.epic import flock, mounted
from forge_actors.edges.epic.descriptor import Descriptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.edges.epic.root import FolderRoot

#: Seconds that the process of the trial has, which takes some milliseconds.
TRIAL_SECONDS = 20.0
#: It holds what it inherited until its input ends, or we do.
_CHILD = "import os; os.read(0, 1)"
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_AGAIN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def check_filesystem(root: FolderRoot) -> None:
    """Refuse a folder on whose file system locks do not do what they have to.

    It takes some milliseconds, and leaves nothing behind.

    Raises:
        UnsupportedFilesystem: the folder and the kind of its file system are named.
        StateError: nothing can be tried there.
    """
    kind = _kind(root)
    found = None if kind is None else problem(kind)
    if found is None:
        failed = _tried(root)
        if failed is None:
            return
        found = f"is on {kind!a}, " if kind else ""
        found += f"where a trial of its locks failed: {failed}"
    raise UnsupportedFilesystem(
        f"{root.path!a} {found}; an EPIC run needs its repository on a disk of this"
        " machine: clone it to one"
    )


def _kind(root: FolderRoot) -> str | None:
    """None where nobody can be asked."""
    table = mounted.read_mounts()
    if table is None:
        return None
    mount = mounted.mount_of(root, table)
    return "" if mount is None else mount.kind


def _tried(root: FolderRoot) -> str | None:
    """What a lock did that it must not do; None if it is as it has to be."""
    try:
        with _scratch(root) as (first, second):
            if not _locks(first):
                return "one that nobody had was refused"
            if _locks(second):
                return "two had the same one"
            with _inheriting(first):
                first.close()
                if _locks(second):
                    return "a process did not keep the one that it inherited"
            if not _locks(second):
                return "one was kept after the end of the process that had it"
    except _Failed as failed:
        return str(failed)
    except OSError as error:
        raise StateError(f"{root.path!a}: {error.strerror}") from None
    return None


class _Failed(Exception):
    """The system said no to a lock, and why."""


def _locks(handle: Descriptor) -> bool:
    try:
        return flock.lock(handle.number)
    except OSError as error:
        raise _Failed(error.strerror) from None


@contextmanager
def _scratch(root: FolderRoot) -> Iterator[tuple[Descriptor, Descriptor]]:
    """Two descriptions of one new file, which is removed."""
    name = f"forge-actors-trial-{secrets.token_hex(8)}"
    with ExitStack() as stack:
        folder = root.reopen()
        stack.callback(os.close, folder)
        first = Descriptor(os.open(name, _NEW, 0o600, dir_fd=folder))
        stack.callback(os.unlink, name, dir_fd=folder)
        stack.callback(first.close)
        second = Descriptor(os.open(name, _AGAIN, dir_fd=folder))
        stack.callback(second.close)
        yield first, second


@contextmanager
def _inheriting(handle: Descriptor) -> Iterator[None]:
    """A process that has inherited it, which has ended after the block."""
    # Nothing of the user's is imported, and the interpreter is the one that runs.
    command = [sys.executable, "-I", "-S", "-c", _CHILD]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=(handle.number,),
        start_new_session=True,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            yield
            child.stdin.close()
            # The end of its output is that of the process: it closes nothing before.
            poll = select.poll()
            poll.register(child.stdout, select.POLLIN)
            if not poll.poll(TRIAL_SECONDS * 1000):
                raise _Failed(f"its process did not end within {TRIAL_SECONDS:.0f} s")
        finally:
            child.kill()
