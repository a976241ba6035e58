"""Writing fetched files into a folder of the user's: nowhere else, and verified."""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from forge_actors.domain.artifacts import check_path
from forge_actors.domain.errors import InvalidInput, Refused, StoreFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    Json = dict[str, Any]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Target:
    """A folder that files are written to; links below it are not followed."""

    def __init__(self, folder: str, *, force: bool) -> None:
        self._folder = folder
        self._force = force
        try:
            os.makedirs(folder, exist_ok=True)
            self._top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise InvalidInput("to", f"{folder}: {error.strerror}") from None

    def close(self) -> None:
        os.close(self._top)

    def check(self, files: Iterable[Json]) -> None:
        """Refuse if one is there already, before any is written.

        Raises:
            Refused: as it says, unless it is to be replaced.
        """
        for file in files:
            path = os.path.join(self._folder, check_path(file["path"]))
            if not self._force and os.path.lexists(path):
                raise self._taken(file["path"])

    def _taken(self, path: str) -> Refused:
        where = os.path.join(self._folder, path)
        return Refused(f"{where} is there already; --force replaces it")

    def write(self, file: Json, pieces: Iterable[bytes]) -> None:
        """Write one file, whole and as it was collected, or leave nothing of it.

        Raises:
            Refused: something is in its place. StoreFailed: it is not what it was.
        """
        *folders, name = check_path(file["path"]).split("/")
        draft = f".{secrets.token_hex(8)}.part"
        try:
            with _opened(self._top, folders) as folder:
                mode = 0o777 if file.get("executable") else 0o666
                fd = os.open(draft, _NEW, mode, dir_fd=folder)
                try:
                    with open(fd, "wb") as out:
                        out.writelines(verified(file, pieces))
                    self._give_name(draft, name, folder)
                finally:
                    with suppress(FileNotFoundError):
                        os.unlink(draft, dir_fd=folder)
        except FileExistsError:
            raise self._taken(file["path"]) from None
        except OSError as error:
            where = os.path.join(self._folder, file["path"])
            problem = f"{where} cannot be written: {error.strerror}"
            raise InvalidInput("to", problem) from None

    def _give_name(self, draft: str, name: str, folder: int) -> None:
        if self._force:
            os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            return
        # Unlike a rename it takes no name that somebody has.
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)


class _opened:  # noqa: N801 - a function in all but name
    """The folder of these names below another, made where it is not there."""

    def __init__(self, top: int, names: Iterable[str]) -> None:
        self._fd = os.dup(top)
        try:
            for name in names:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=self._fd)
                inner = os.open(name, _FOLDER, dir_fd=self._fd)
                os.close(self._fd)
                self._fd = inner
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> int:
        return self._fd

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def verified(file: Json, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces of a file; an error at the end if they are not what was collected.

    Raises:
        StoreFailed: they are not.
    """
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        yield piece
    if size != file["bytes"] or digest.hexdigest() != file["sha256"]:
        raise StoreFailed(f"{file['path']} is not what was collected: its hash differs")
