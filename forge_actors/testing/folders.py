"""Repositories by their folders alone: no git program is run.

app = make_repository(tmp_path / "app")
"""

from __future__ import annotations

import os
from pathlib import Path

import trio

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.repositories import Checkout
from forge_actors.edges.git.checkout import GitProgram


def make_repository(folder: str | os.PathLike[str]) -> Path:
    """A folder that counts as a git repository for `FolderGit`, and as a broken one for
    git itself."""
    path = Path(folder)
    path.joinpath(".git").mkdir(parents=True, exist_ok=True)
    return path


class FolderGit(GitProgram):
    """The port `Git`: what has a folder `.git` is a repository."""

    async def checkout(self, path: str) -> Checkout:
        """See the port."""
        await trio.lowlevel.checkpoint()
        place = Path(os.path.realpath(path))
        for folder in (place, *place.parents):
            common = folder / ".git"
            if common.is_dir():
                status = common.stat()
                return Checkout(
                    str(folder), str(common), status.st_dev, status.st_ino, main=True
                )
        raise InvalidInput("path", f"{path} is in no repository: see make_repository")
