"""Secrets: values that jobs get as variables, each a file in a folder of the home.

The command line uses this too, without a service and without loading more than this:
a value never travels through one.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput, NotFound, StoreFailed
from forge_actors.edges.node.agent.masking import LEAST_BYTES

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "secrets"
#: Bytes from which on a value is masked in the output of jobs.
LEAST_MASKED = LEAST_BYTES
#: Bytes of a value: one variable takes 128 KiB on Linux, and a job has several.
MAX_BYTES = 32 * 1024

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


def check_name(name: str, *, field: str) -> None:
    """Refuse what cannot name a secret.

    Raises:
        InvalidInput: saying what can.
    """
    if not _NAME.fullmatch(name):
        allowed = ("a letter or _, then up to 63 letters, digits and _",)
        raise InvalidInput(field, f"{name!r} cannot name a variable", allowed=allowed)
    if name.startswith("FORGE_"):
        raise InvalidInput(field, f"{name!r} is set by the service itself")
    if name == "PATH":
        raise InvalidInput(field, "'PATH' is no secret: errors tell where was searched")


def checked_value(raw: bytes) -> bytes:
    """The value that was typed or piped: without the newline at its end.

    Raises:
        InvalidInput: it cannot be the value of a secret. It is not repeated.
    """
    value = raw.removesuffix(b"\n").removesuffix(b"\r")
    if len(value) > MAX_BYTES:
        raise InvalidInput("value", f"has more than {MAX_BYTES} bytes")
    if not value.strip():
        raise InvalidInput("value", "is empty, or nothing but white space")
    if b"\0" in value:
        raise InvalidInput("value", "has a NUL byte, which no variable can hold")
    return value


class SecretFolder:
    """The secrets of one home. Nothing of it is held in memory."""

    def __init__(self, home: str | Path) -> None:
        self.path = os.path.join(home, FOLDER)

    def names(self) -> list[str]:
        """In the order of the alphabet.

        Raises:
            StoreFailed: the folder cannot be read.
        """
        try:
            return sorted(filter(_NAME.fullmatch, self._files()))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failed("the secrets cannot be read", self.path, error) from None

    def changed_at(self, name: str) -> float:
        """When it was set last, in seconds of the wall clock."""
        try:
            return os.lstat(os.path.join(self.path, name)).st_mtime
        except FileNotFoundError:
            raise self._unknown(name) from None

    def read(self, name: str) -> bytes:
        """The value.

        Raises:
            NotFound: there is no such secret.
            StoreFailed: it cannot be read.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            with open(os.open(os.path.join(self.path, name), flags), "rb") as file:
                return file.read(MAX_BYTES)
        except FileNotFoundError:
            raise self._unknown(name) from None
        except OSError as error:
            message = f"the secret {name} cannot be read"
            raise _failed(message, self.path, error) from None

    def write(self, name: str, value: bytes) -> None:
        """Set it: the old value or the new one is there, never a part.

        Raises:
            StoreFailed: it could not be saved; what was there is still there.
        """
        # No name has a dot, so that what a crash leaves is no secret.
        fresh = os.path.join(self.path, f"{name}.{os.getpid()}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._make_folder()
            self._sweep()
            try:
                with open(os.open(fresh, flags, 0o600), "wb") as file:
                    file.write(value)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(fresh, os.path.join(self.path, name))
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(fresh)
                raise
            self._sync()
        except OSError as error:
            message = f"the secret {name} could not be saved"
            raise _failed(message, self.path, error) from None

    def remove(self, name: str) -> None:
        """Forget it.

        Raises:
            NotFound: there is no such secret.
            StoreFailed: it could not be removed.
        """
        try:
            os.unlink(os.path.join(self.path, name))
            self._sync()
        except FileNotFoundError:
            raise self._unknown(name) from None
        except OSError as error:
            message = f"the secret {name} could not be removed"
            raise _failed(message, self.path, error) from None

    def _make_folder(self) -> None:
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.path, 0o700)
        found = os.lstat(self.path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise NotADirectoryError(0, "it is no folder of ours")
        if found.st_mode & 0o077:
            os.chmod(self.path, 0o700)

    def _sweep(self) -> None:
        """Remove values that others were killed before they had set."""
        for name in self._files():
            writer = re.fullmatch(r"\w+\.(\d{1,9})\.new", name)
            if writer is not None and not _is_alive(int(writer[1])):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(self.path, name))

    def _files(self) -> list[str]:
        with os.scandir(self.path) as entries:
            return [entry.name for entry in entries]

    def _sync(self) -> None:
        folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _unknown(self, name: str) -> NotFound:
        names = self.names()
        known = f"; there are {', '.join(names)}" if names else "; none is set"
        return NotFound(f"there is no secret {name!r}{known}")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _failed(message: str, path: str, error: OSError) -> StoreFailed:
    return StoreFailed(f"{message}: {path}: {error.strerror}")
