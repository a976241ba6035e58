"""The settings file of a repository: read strictly, or not at all."""

from __future__ import annotations

import os
import stat
import tomllib

from forge_actors.domain.errors import InvalidInput, WorktreeFailed
from forge_actors.domain.repository_settings import RepositorySettings
from forge_actors.domain.requests import convert
from forge_actors.edges.git.ids import OUR_FOLDER

NAME = "settings.toml"
#: Bytes of the file.
MAX_BYTES = 64 * 1024

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_settings(common_dir: str) -> RepositorySettings:
    """What the repository with this git directory asks for.

    Its commands run as this user, so nobody else may have a say in them.

    Raises:
        WorktreeFailed: the file is not valid, or may be somebody else's.
    """
    path = os.path.join(common_dir, OUR_FOLDER, NAME)
    try:
        text = _read(path)
    except FileNotFoundError:
        return RepositorySettings()
    except OSError as error:
        raise WorktreeFailed(f"{path} cannot be read: {error.strerror}") from None
    try:
        return convert(tomllib.loads(text.decode("utf-8")), RepositorySettings)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise WorktreeFailed(f"{path} is no valid TOML: {error}") from None
    except InvalidInput as error:
        raise WorktreeFailed(f"{path}: {error}") from None


def _read(path: str) -> bytes:
    for where in (os.path.dirname(path), path):
        if stat.S_ISLNK(os.lstat(where).st_mode):
            raise WorktreeFailed(
                f"{where} is a link, so it is not followed: put a file there"
            )
    fd = os.open(path, _FLAGS)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise WorktreeFailed(f"{path} is no file")
        folder = os.stat(os.path.dirname(path))
        for where, found in ((path, status), (os.path.dirname(path), folder)):
            if found.st_uid not in (os.geteuid(), 0):
                raise WorktreeFailed(
                    f"{where} belongs to another user: its commands would run as you;"
                    " if they are to, make it your own"
                )
            if found.st_mode & stat.S_IWOTH:
                raise WorktreeFailed(
                    f"{where} can be written by everybody: chmod o-w {where}"
                )
        if status.st_size > MAX_BYTES:
            raise WorktreeFailed(f"{path} has more than {MAX_BYTES} bytes")
        return os.read(fd, MAX_BYTES + 1)
    finally:
        os.close(fd)
