"""Backups of a home's store, taken whether or not it is served."""

from __future__ import annotations

import os
from pathlib import Path

from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.edges.sqlite.checking import refuse_marked
from forge_actors.edges.sqlite.copying import Contents, copy_store
from forge_actors.runtime.homes import STORE_FILE

__all__ = ["Contents", "back_up", "check_target"]


def back_up(home: Path, file: Path, *, overwrite: bool = False) -> Contents:
    """Copy the store of a home to a file that only its owner can read.

    Raises:
        NotFound: the home has no store.
        InvalidInput: there is no folder for the file, or the file is part of the home.
        Refused: there is such a file, and it is not to be overwritten.
        StoreDamaged, StoreFromTheFuture, StoreFailed: the store cannot be copied.
    """
    source = home / STORE_FILE
    refuse_marked(source)
    if not source.exists():
        raise NotFound(f"there is no store in {home}")
    check_target(home, file, overwrite=overwrite)
    return copy_store(source, file)


def check_target(home: Path, file: Path, *, overwrite: bool) -> None:
    """Raises InvalidInput or Refused if nothing may be written to `file`."""
    if not file.parent.is_dir():
        raise InvalidInput("file", f"there is no folder {file.parent}")
    if file.is_dir():
        raise InvalidInput("file", f"{file} is a folder")
    store = os.path.realpath(home / STORE_FILE)
    if os.path.realpath(file).startswith(store):
        raise InvalidInput("file", f"{file} belongs to the store itself")
    if os.path.lexists(file) and not overwrite:
        raise Refused(f"{file} exists; --force replaces it")
