"""Prompts: what agents are asked to do, each a file in a folder of the home.

A file is named by the digest of its content, so that one prompt is kept once however
many jobs have it, and no job's record has more of it than that name.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput, StoreFailed
from forge_actors.runtime.homes import PROMPTS

if TYPE_CHECKING:
    from pathlib import Path

#: Bytes of a prompt.
MAX_PROMPT = 8 * 1024 * 1024


class PromptFolder:
    """The prompts of one home."""

    def __init__(self, home: str | Path) -> None:
        self._folder = os.path.join(home, PROMPTS)

    def path(self, digest: str) -> str:
        return os.path.join(self._folder, digest)

    def keep(self, prompt: str, *, field: str) -> str:
        """Make a prompt durable, unless it is; the digest it goes by from now on.

        Raises:
            InvalidInput: nobody can be asked this.
            StoreFailed: it could not be saved.
        """
        if not prompt.strip():
            raise InvalidInput(field, "is empty")
        try:
            content = prompt.encode()
        except UnicodeEncodeError:
            raise InvalidInput(field, "is no valid Unicode") from None
        if len(content) > MAX_PROMPT:
            raise InvalidInput(field, f"has more than {MAX_PROMPT} bytes")
        digest = hashlib.sha256(content).hexdigest()
        path = self.path(digest)
        try:
            if not os.path.exists(path):
                self._write(path, content)
            else:
                # It is in use again: what cleans up goes by this.
                os.utime(path)
        except OSError as error:
            why = f"the prompt could not be saved: {self._folder}: {error.strerror}"
            raise StoreFailed(why) from None
        return digest

    def read(self, digest: str) -> str:
        """A prompt that was kept.

        Raises:
            StoreFailed: it is not there any more.
        """
        try:
            with open(self.path(digest), encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "is no text"
            raise StoreFailed(
                f"the prompt {digest[:12]} cannot be read: {why}"
            ) from None

    def _write(self, path: str, content: bytes) -> None:
        """All of it is there under its name, or nothing."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._folder, 0o700)
        fresh = f"{path}.{os.getpid()}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(fresh, flags, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(fresh)
            raise
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
