"""Result: what a job with a worktree came to, as its repository tells it."""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

from forge_actors.domain.agents import Usage

#: `patch`: what `git apply` takes. `stat`: lines a file. `names`: paths.
DiffForm = Literal["patch", "stat", "names"]
DIFF_FORMS: tuple[DiffForm, ...] = get_args(DiffForm)
#: How a branch may be brought into a checkout. `auto`: as `git merge` does it, forward
#: if that is possible, else with a merge commit; `merge`: always with one.
ApplyMode = Literal["auto", "ff-only", "merge", "cherry-pick"]
APPLY_MODES: tuple[ApplyMode, ...] = get_args(ApplyMode)

#: Bytes of a diff that are given; one byte more says that there is more.
MAX_DIFF = 16 * 1024 * 1024
#: Commits and files that a result names; it counts all of them.
MAX_COMMITS = 50
MAX_FILES = 200
#: Characters of the first line of a commit.
MAX_SUBJECT = 200


class Commit(Struct, frozen=True):
    """A commit that a job made, by its id and the first line of its message."""

    id: str
    subject: str


class ChangedFile(Struct, frozen=True, omit_defaults=True):
    """A file that a job changed. `added` and `deleted` are lines; of a binary file
    nobody knows them."""

    path: str
    #: As git calls it: A, D, M, R, T.
    status: str
    added: int | None = None
    deleted: int | None = None
    #: What it was called before.
    renamed_from: str | None = None


class JobResult(Struct, frozen=True, omit_defaults=True):
    """What a job did since the commit that its worktree began at.

    The files are those of its commits and of what it left uncommitted together, the
    newest commits come first. What is None or not there is not known, and `note` says
    why.
    """

    branch: str
    base_commit: str
    head: str | None = None
    commits: tuple[Commit, ...] = ()
    commit_count: int | None = None
    files: tuple[ChangedFile, ...] = ()
    file_count: int | None = None
    #: Lines of all of these files.
    added: int | None = None
    deleted: int | None = None
    #: Files that are in no commit. None: there is no worktree any more.
    uncommitted: int | None = None
    note: str | None = None
    #: What its agent said at last, and what it used.
    text: str | None = None
    usage: Usage | None = None


class Applied(Struct, frozen=True):
    """What bringing a branch into a checkout came to."""

    job: str
    branch: str
    #: The job that did it; None if there was nothing to do.
    by: str | None
    checkout: str
    #: The branch of the checkout, and the commit that it is at now.
    into: str
    commit: str
    #: `fast-forward`, `merge`, `cherry-pick`, or `nothing`: it was there already.
    how: str
    commits: int = 0
