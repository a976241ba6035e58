"""The commits of a repository: where its branches are, and what a commit changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors.domain.errors import WorktreeFailed
from forge_actors.edges.git.program import git

if TYPE_CHECKING:
    from forge_actors.domain.repositories import Repository
    from forge_actors.edges.git.program import Done

#: Seconds for one look of git.
SECONDS = 20.0
#: Bytes of the list of branches: ten thousand of them.
MAX_LIST = 1024 * 1024
#: Bytes of the list of changed files; of a longer one the beginning is told.
MAX_NAMES = 64 * 1024
#: The tree without files, by how long the ids of a repository are.
_NOTHING = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_FORMAT = "--format=%(objectname) %(refname)"


class GitCommits:
    """The port `CommitReader` on the git program found on the PATH."""

    async def heads(self, repository: Repository) -> tuple[dict[str, str], str | None]:
        """See the port."""
        told = await _ask(
            repository, "for-each-ref", _FORMAT, "refs/heads", "refs/remotes"
        )
        if told.code != 0 or told.cut:
            why = "it has too many branches" if told.cut else told.words
            raise WorktreeFailed(f"the branches cannot be read: {why}")
        heads: dict[str, str] = {}
        for line in os.fsdecode(told.out).splitlines():
            commit, _, name = line.partition(" ")
            # Names that are no text cannot be kept; nobody can name them either.
            name = name.encode("utf-8", "replace").decode()
            heads[name.removeprefix("refs/heads/").removeprefix("refs/")] = commit
        found = await _ask(
            repository, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"
        )
        return heads, found.text.strip() or None

    async def changed(
        self, repository: Repository, before: str | None, now: str, pattern: str
    ) -> list[str] | None:
        """See the port."""
        told = await _ask(
            repository,
            *("diff-tree", "-r", "-z", "--name-only", "--no-renames"),
            *(before or _NOTHING[len(now)], now, "--", f":(top,glob){pattern}"),
            limit=MAX_NAMES,
        )
        if told.code != 0:
            if before is not None and not await _has(repository, before):
                return None
            raise WorktreeFailed(f"what commits change cannot be read: {told.words}")
        names = told.out.split(b"\0")[:-1]
        return [name.decode("utf-8", "replace") for name in names]


async def _has(repository: Repository, commit: str) -> bool:
    told = await _ask(repository, "cat-file", "-e", f"{commit}^{{commit}}")
    return told.code == 0


async def _ask(repository: Repository, *arguments: str, limit: int = MAX_LIST) -> Done:
    return await git(
        *("--no-optional-locks", "-C", repository.path, *arguments),
        seconds=SECONDS,
        environment={
            # A partial clone is looked at as it is: nothing may fetch the rest.
            "GIT_NO_LAZY_FETCH": "1",
            # A checkout that lost its .git is not one of a repository around it.
            "GIT_CEILING_DIRECTORIES": os.path.dirname(repository.path),
        },
        limit=limit,
    )
