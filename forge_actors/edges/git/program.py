"""Running the git program: with a clean environment, a time limit and bounded output.

What we change in a repository must come out the same whatever its own settings say, so
no hook and no monitor of the file system of it runs, and nothing asks a question.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import trio

from forge_actors.domain.errors import Unavailable, WorktreeFailed
from forge_actors.domain.last_lines import last_lines
from forge_actors.edges.git.checkout import clean_environment

if TYPE_CHECKING:
    from trio.abc import ReceiveStream

#: Bytes of output that are taken in; what follows is read and dropped.
OUTPUT_LIMIT = 256 * 1024
#: Seconds between asking a git program to end and ending it. It removes its locks.
GRACE = 2.0
#: The variable by which a git program of ours is known, should it outlive us.
MARK = "FORGE_WORKTREE"

#: Nothing of the repository or of its user may have a say in what these do.
_OURS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "submodule.recurse=false",
    "worktree.useRelativePaths=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
)


class Done(NamedTuple):
    """How a git program ended, and what it said."""

    code: int
    out: bytes
    #: All that it printed as errors, for programs.
    errors: str
    #: The last lines of it for people, without secrets and escape sequences.
    words: str
    #: There was more output than is taken in.
    cut: bool

    @property
    def text(self) -> str:
        return os.fsdecode(self.out.removesuffix(b"\n"))


async def git(
    *arguments: str,
    seconds: float,
    cwd: str | None = None,
    mark: str = "",
    environment: dict[str, str] | None = None,
    limit: int = OUTPUT_LIMIT,
) -> Done:
    """Run git to its end; it and all that it started are ended when we are cancelled.

    `mark`, the folder of a worktree, is put into its environment: it is ours.

    Raises:
        Unavailable: there is no git.
        WorktreeFailed: it took longer than `seconds`.
    """
    program = shutil.which("git")
    if program is None:
        raise Unavailable("git is not installed, or not on the PATH")
    options = [part for option in _OURS for part in ("-c", option)]
    process = await trio.lowlevel.open_process(
        [program, *options, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        env={**_environment(), MARK: mark, **(environment or {})},
        # It has no terminal to ask at, and one signal reaches all that it started.
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    out, errors = _Taken(limit), _Taken(OUTPUT_LIMIT)
    with trio.move_on_after(seconds) as time:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(out.read, process.stdout)
                nursery.start_soon(errors.read, process.stderr)
                await process.wait()
        except BaseException:
            await _end(process)
            raise
    if time.cancelled_caught:
        name = next((a for a in arguments if not a.startswith("-")), "git")
        raise WorktreeFailed(f"git {name} was ended: it took longer than {seconds:g} s")
    assert process.returncode is not None, "it has ended"
    said = errors.data.decode("utf-8", "surrogateescape")
    words = last_lines(errors.data.decode("utf-8", "replace"))
    return Done(process.returncode, bytes(out.data), said, words, out.cut)


class _Taken:
    """The beginning of what a program prints."""

    def __init__(self, limit: int) -> None:
        self.data = bytearray()
        self.cut = False
        self._limit = limit

    async def read(self, stream: ReceiveStream) -> None:
        async with stream:
            async for chunk in stream:
                room = self._limit - len(self.data)
                self.data += chunk[:room]
                self.cut = self.cut or len(chunk) > room


async def _end(process: trio.Process) -> None:
    """End it and all of its session's first group; it is gone when this returns."""
    with trio.CancelScope(shield=True):
        signal_group = partial(os.killpg, process.pid)
        with suppress(ProcessLookupError, PermissionError):
            signal_group(signal.SIGTERM)
        with trio.move_on_after(GRACE):
            await process.wait()
        with suppress(ProcessLookupError, PermissionError):
            signal_group(signal.SIGKILL)
        await process.wait()


def _environment() -> dict[str, str]:
    kept = clean_environment()
    for name in ("SSH_ASKPASS", "DISPLAY"):
        kept.pop(name, None)
    # An empty answer at once in place of a window that nobody sees.
    return {**kept, "GIT_ASKPASS": "true", "SSH_ASKPASS_REQUIRE": "never"}
