"""The templates of a home's own file, read again when that has changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.forge_files import MAX_FILE_BYTES, own_templates
from forge_actors.domain.templates import TEMPLATES_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.templates import Template


class OwnTemplates:
    """Those of one home."""

    def __init__(self, home: Path) -> None:
        self._path = str(home / TEMPLATES_FILE)
        #: What the file was when it was read.
        self._mark: tuple[int, int, int] | None = None
        self._known: tuple[Template, ...] = ()

    async def read(self) -> tuple[Template, ...]:
        """All of them, by name.

        Raises:
            InvalidInput: naming what is wrong in the file.
        """
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise InvalidInput(
                self._path, f"cannot be read: {error.strerror}"
            ) from None
        mark = (status.st_ino, status.st_size, status.st_mtime_ns)
        if mark != self._mark:
            self._known = await trio.to_thread.run_sync(self._understand)
            self._mark = mark
        return self._known

    def _unreadable(self, error: OSError) -> InvalidInput:
        return InvalidInput(self._path, f"cannot be read: {error.strerror}")

    def _understand(self) -> tuple[Template, ...]:
        try:
            with open(self._path, "rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
            text = data.decode()
        except OSError as error:
            raise InvalidInput(
                self._path, f"cannot be read: {error.strerror}"
            ) from None
        except UnicodeDecodeError:
            raise InvalidInput(self._path, "is no UTF-8 text") from None
        if len(data) > MAX_FILE_BYTES:
            raise InvalidInput(self._path, f"has more than {MAX_FILE_BYTES} bytes")
        return own_templates(text, self._path)
