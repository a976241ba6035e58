"""The id of an installation: one home for as long as it is there, over all its starts.

Unlike all else that is written into a home it is synced with its folder, because it is
written once and must never change: others may know the home by it.
"""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.runtime.homes import INSTALLATION_FILE

if TYPE_CHECKING:
    from pathlib import Path

#: A deployment that gives its machines their ids may give one to a home.
PINNED_BY = "FORGE_INSTANCE_ID"

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


class InstallationMismatch(Refused):
    """The home has another id than the one it is to have."""

    code = "FORGE_INSTANCE_ID_MISMATCH"


def installation_id(home: Path, pinned: str | None = None) -> str:
    """The id of a home, which is given one now if it has none: `pinned`, or a new one.

    Call it only as the owner of the home.

    Raises:
        InstallationMismatch: it has another one than `pinned`.
        InvalidInput: `pinned` is no id; or it cannot be read or saved, or is damaged.
    """
    if pinned is not None and not _ID.fullmatch(pinned):
        raise InvalidInput(
            PINNED_BY,
            f"{pinned!r} is no id: 1 to 128 letters, digits and . _ : -, the first one"
            " a letter or a digit",
        )
    path = home / INSTALLATION_FILE
    try:
        stored = _read(path)
        if stored is None:
            stored = pinned or f"forge_{secrets.token_hex(16)}"
            _save(path, stored)
    except OSError as error:
        raise InvalidInput("home", f"{path}: {error.strerror}") from None
    if not _ID.fullmatch(stored):
        raise InvalidInput(
            "home", f"{path} holds no id; write the one it had into it, or remove it"
        )
    if pinned is not None and pinned != stored:
        raise InstallationMismatch(
            f"{InstallationMismatch.code}: {home} is {stored}, and {PINNED_BY} says"
            f" {pinned}: it is the wrong home, or the wrong value"
        )
    return stored


def known_installation(home: Path) -> str | None:
    """The id that a home has, if one can be read."""
    with suppress(OSError):
        stored = _read(home / INSTALLATION_FILE)
        return stored if stored and _ID.fullmatch(stored) else None
    return None


def _read(path: Path) -> str | None:
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            # One byte more than the longest there is, and the end of its line.
            return file.read(130).removesuffix("\n")
    except FileNotFoundError:
        return None


def _save(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    with open(os.open(fresh, flags, 0o600), "w", encoding="ascii") as file:
        file.write(f"{text}\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
