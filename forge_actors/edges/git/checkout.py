"""Which repository a folder belongs to, as git sees it."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import InvalidInput, Unavailable
from forge_actors.domain.repositories import Checkout, Identity

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

#: Seconds one git command may take before it counts as hung.
GIT_SECONDS = 30.0
#: Our folder in a git common directory, and the file in it with the ids, one a line.
OUR_FOLDER, ID_FILE = "forge-actors", "id"
#: Ids kept in the file; one is added by each home that cannot use those of others.
MAX_IDS = 64

_ID = re.compile(r"[0-9a-z]{19}")
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def clean_environment() -> dict[str, str]:
    """Our environment without what would make git look elsewhere or ask questions.

    A service started, or a job submitted, from inside a git hook inherits `GIT_DIR` and
    its kin, which would turn every call of ours to another repository.
    """
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("GIT_")
    }
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_SSH_COMMAND"):
        if name in os.environ:
            kept[name] = os.environ[name]
    return {**kept, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


class GitProgram:
    """The port `Git` on the git program found on the PATH."""

    async def checkout(self, path: str) -> Checkout:
        folder = Path(path).expanduser().absolute()
        if not folder.exists():
            raise InvalidInput("path", f"{path} does not exist")
        if not folder.is_dir():
            raise InvalidInput("path", f"{path} is no folder")
        lines = await self._rev_parse(folder, path)
        if len(lines) < 3:
            raise InvalidInput(
                "path", f"{path} is a bare repository: add a work tree of it"
            )
        if len(lines) > 3:
            raise InvalidInput("path", f"{path!r} has a line break in its name")
        root, common, own = (os.path.realpath(folder / line) for line in lines)
        status = os.stat(common)
        return Checkout(root, common, status.st_dev, status.st_ino, common == own)

    def identity(self, common_dir: str) -> Identity | None:
        """See the port. An id file that cannot be read counts as none."""
        try:
            status = os.stat(common_dir)
        except OSError:
            return None
        ids: tuple[str, ...] = ()
        with suppress(OSError):
            folder = os.open(os.path.join(common_dir, OUR_FOLDER), _FOLDER_FLAGS)
            try:
                ids = _read_ids(folder)
            finally:
                os.close(folder)
        return Identity(status.st_dev, status.st_ino, ids)

    def add_id(self, common_dir: str, repo_id: str) -> None:
        """See the port."""
        path = os.path.join(common_dir, OUR_FOLDER)
        try:
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
            folder = os.open(path, _FOLDER_FLAGS)
            try:
                _add_id(folder, repo_id)
            finally:
                os.close(folder)
        except OSError as error:
            problem = f"{path}/{ID_FILE} cannot be written: {error.strerror}"
            raise InvalidInput("path", problem) from None

    async def clone(self, source: str, target: Path) -> None:
        """Clone a repository into a folder that does not exist yet.

        Raises:
            InvalidInput: git could not; its own words are given.
        """
        done = await self._run(
            "clone", "--quiet", "--", source, str(target), limit=None
        )
        if done.returncode != 0:
            raise InvalidInput("clone", f"{source}: {_last_line(done.stderr)}")

    async def _rev_parse(self, folder: Path, path: str) -> list[str]:
        done = await self._run(
            "-C",
            str(folder),
            "rev-parse",
            "--show-toplevel",
            "--git-common-dir",
            "--absolute-git-dir",
        )
        if done.returncode == 0:
            return os.fsdecode(done.stdout.removesuffix(b"\n")).split("\n")
        words = _last_line(done.stderr)
        if "must be run in a work tree" in words:
            return []
        if "dubious ownership" in os.fsdecode(done.stderr):
            raise InvalidInput(
                "path",
                f"{path} belongs to another user; if you trust it, run:"
                f" git config --global --add safe.directory {folder}",
            )
        raise InvalidInput("path", f"{path} is no git work tree: {words}")

    async def _run(
        self, *arguments: str, limit: float | None = GIT_SECONDS
    ) -> subprocess.CompletedProcess[bytes]:
        program = shutil.which("git")
        if program is None:
            raise Unavailable("git is not installed, or not on the PATH")
        seconds = float("inf") if limit is None else limit
        with trio.move_on_after(seconds):
            return await trio.run_process(
                [program, *arguments],
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env=clean_environment(),
            )
        raise Unavailable(f"git {arguments[-1]} took longer than {seconds:.0f} s")


def known_ids(common_dir: str) -> set[str]:
    """The ids in the file of a git common directory; none if there is no such file."""
    with suppress(OSError):
        folder = os.open(os.path.join(common_dir, OUR_FOLDER), _FOLDER_FLAGS)
        try:
            return set(_read_ids(folder))
        finally:
            os.close(folder)
    return set()


def drop_ids(common_dir: str, ids: Collection[str]) -> None:
    """Take ids out of the file again; with the last of them our folder goes.

    Raises:
        OSError: it cannot be changed.
    """
    path = os.path.join(common_dir, OUR_FOLDER)
    folder = os.open(path, _FOLDER_FLAGS)
    try:
        _lock(folder)
        left = [known for known in _read_ids(folder) if known not in ids]
        if left:
            _replace_ids(folder, left)
            return
    finally:
        os.close(folder)
    shutil.rmtree(path)


def _lock(folder: int) -> None:
    with suppress(OSError):  # some network disks have no locks
        # Two services that write at once must not lose an id; closing unlocks.
        fcntl.flock(folder, fcntl.LOCK_EX)


def _read_ids(folder: int) -> tuple[str, ...]:
    # Anything may lie there: no link is followed and no pipe is waited for.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(ID_FILE, flags, dir_fd=folder)
    except FileNotFoundError:
        return ()
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return ()
        text = os.read(fd, 20 * MAX_IDS).decode("ascii", "replace")
    finally:
        os.close(fd)
    return tuple(line for line in text.split("\n") if _ID.fullmatch(line))


def _add_id(folder: int, repo_id: str) -> None:
    """Replace the id file by one that begins with a new id, whole or not at all."""
    if stat.S_IMODE(os.fstat(folder).st_mode) != 0o700:
        os.fchmod(folder, 0o700)
    _lock(folder)
    ids = [repo_id, *(known for known in _read_ids(folder) if known != repo_id)]
    _replace_ids(folder, ids[:MAX_IDS])


def _replace_ids(folder: int, ids: Sequence[str]) -> None:
    draft = f"{ID_FILE}.{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(draft, flags, 0o600, dir_fd=folder)
    try:
        with open(fd, "w", encoding="ascii") as file:
            file.writelines(f"{known}\n" for known in ids)
            file.flush()
            # The registration is durable; without its id it would not be recognised.
            os.fsync(fd)
        os.rename(draft, ID_FILE, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(draft, dir_fd=folder)
        raise
    os.fsync(folder)


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("fatal: ") if lines else "git gave no reason"
