"""The section `[worktrees]`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from forge_actors.domain.branches import DEFAULT_PATTERN
from forge_actors.domain.removal import ARCHIVE_BYTES, DISPOSABLE


class WorktreeSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Worktrees of jobs."""

    #: An agent job that only waits for the checkout of others gets one by itself.
    automatic: bool = True
    #: The name of the branch, where neither the job nor its repository says one.
    branch: str = DEFAULT_PATTERN
    #: How long it may take to make one, its files included.
    make_timeout: str | float = "10m"
    #: Bytes of uncommitted, and of ignored files that may be saved of one before it is
    #: removed; with more it stays.
    archive_bytes: Annotated[int, Meta(ge=0, le=1 << 40)] | str = ARCHIVE_BYTES
    #: Names of ignored files and folders that can be made again, spaces between them.
    disposable: str = " ".join(DISPOSABLE)
