"""Where a repository came from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors.edges.git.program import git

if TYPE_CHECKING:
    from forge_actors.domain.repositories import Repository

#: Seconds for one look of git, and bytes of a URL.
SECONDS, MAX_URL = 10.0, 4096


async def origin_url(repository: Repository) -> str | None:
    """The URL of its remote `origin`, if it has one. There may be a password in it.

    Raises:
        Unavailable, WorktreeFailed: git cannot tell.
    """
    told = await git(
        *("-C", repository.path, "remote", "get-url", "origin"),
        seconds=SECONDS,
        environment={"GIT_CEILING_DIRECTORIES": os.path.dirname(repository.path)},
        limit=MAX_URL,
    )
    return None if told.code != 0 or told.cut else told.text.strip() or None
