"""Removal: the steps by which a worktree goes, and whether it may.

Nothing is removed before what is in it has been saved and read back. Each step leaves
a proof in the receipt of the worktree. Until its folder is moved aside a removal that
was cut short begins anew, since nothing is known any more of what is in it; from then
on it goes on, as everything was proven before.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable

#: In the order in which they are taken.
Step = Literal[
    "looked",  # nothing uses it, and it may go
    "locked",  # its record says that it goes, so that no job starts in it
    "saved",  # a commit holds what was not committed
    "archived",  # archives hold what no commit can hold
    "kept",  # refs, or a bundle, hold every commit that nothing else holds
    "proven",  # all of it was read back, and nothing has changed meanwhile
    "aside",  # its folder has another name, and still nothing has changed
    "removing",  # from here on content may be missing in the folder
    "removed",  # the folder is gone
    "branch",  # its branch holds the checkpoint, or is gone as it held nothing
    "pruned",  # git does not list it any more
    "closed",  # its record says that it is gone
]
STEPS: tuple[Step, ...] = get_args(Step)

#: Where the folder of a worktree is found: under its name, under the name that a
#: removal gave it, or nowhere.
Place = Literal["whole", "aside", "gone"]

#: What an archive holds. `files`: content that no commit could hold, or repositories in
#: the tree with work of their own. `ignored`: files that git was told to ignore, and
#: originals of files that a filter stores in another form. `git`: what git knows of the
#: worktree: its index, the state of a merge or rebase, the history of its HEAD.
ArchiveKind = Literal["files", "ignored", "git"]

#: Names of folders and files that can be made again. Only what git ignores is left out.
DISPOSABLE = (
    "node_modules",
    ".venv",
    "venv",
    "__pycache__",
    "*.pyc",
    "*.egg-info",
    ".eggs",
    ".tox",
    ".nox",
    ".hypothesis",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".cache",
    ".gradle",
    ".next",
    ".turbo",
    ".parcel-cache",
    "target",
)
#: Bytes of all that is archived of one worktree.
ARCHIVE_BYTES = 256 << 20


class Archive(Struct, frozen=True, omit_defaults=True):
    """A file that holds a part of a worktree, and what proves that it is whole."""

    kind: ArchiveKind
    name: str
    sha256: str
    size: int
    files: int


class Checkpoint(Struct, frozen=True, omit_defaults=True):
    """The commit of what was not committed."""

    commit: str
    tree: str
    #: The commit of what was staged, its second parent, where that was something else.
    index: str | None = None
    #: How many files are in it with a content of their own.
    files: int = 0


class KeptRef(Struct, frozen=True):
    """A ref that keeps a commit."""

    ref: str
    commit: str


class Taken(Struct, frozen=True, omit_defaults=True):
    """A step that was taken, when, and what showed it."""

    step: Step
    at: float
    proof: str = ""


class Receipt(Struct, omit_defaults=True):
    """What became of the content of one worktree."""

    id: str
    repo: str
    #: The git common directory of its repository.
    common_dir: str
    path: str
    branch: str
    begun_at: float
    base_commit: str | None = None
    #: The name of its entry in the repository; None: there was none.
    entry: str | None = None
    #: What its HEAD was: a ref, or None when it was detached; and the commit.
    head_ref: str | None = None
    head: str | None = None
    checkpoint: Checkpoint | None = None
    archives: list[Archive] = []
    refs: list[KeptRef] = []
    #: The name of the bundle, where refs could not be written.
    bundle: Archive | None = None
    #: Ignored files that were removed without a copy, because a person asked for it.
    given_up: int = 0
    #: Devices and inodes of the folder, so that nothing else is taken for it.
    device: int = 0
    inode: int = 0
    steps: list[Taken] = []
    #: When the last try had to leave it where it is, and why.
    tried_at: float | None = None
    reason: str | None = None

    @property
    def closed_at(self) -> float | None:
        return next((each.at for each in self.steps if each.step == "closed"), None)

    def has(self, step: Step) -> bool:
        return any(taken.step == step for taken in self.steps)


class Limits(Struct, frozen=True):
    """What may be done to save the content of a worktree."""

    archive_bytes: int = ARCHIVE_BYTES
    disposable: tuple[str, ...] = DISPOSABLE


class Use(Struct, frozen=True):
    """What shows that a worktree is in use."""

    #: The state of an active job that runs, or is to run, in it.
    job: str | None = None
    processes: tuple[str, ...] = ()


class Content(Struct, frozen=True):
    """How much of a worktree would be lost with its folder, and what hinders saving."""

    uncommitted_files: int = 0
    uncommitted_bytes: int = 0
    ignored_bytes: int = 0
    nested_bytes: int = 0
    #: Something that cannot be read, or is mounted in it, and why.
    unreadable: str | None = None


def why_in_use(use: Use) -> str | None:
    """Why nothing may be removed now; None if nothing uses it."""
    if use.job is not None:
        return f"a job in it is {use.job}"
    if use.processes:
        return f"process {use.processes[0]} uses it"
    return None


def why_it_stays(content: Content, limits: Limits, *, force: bool) -> str | None:
    """Why a worktree that nothing uses must not go; None if it may.

    Only ignored files are given up by force; everything else is saved in any case.
    """
    if content.unreadable is not None:
        return content.unreadable
    if force:
        return None
    if content.ignored_bytes > limits.archive_bytes:
        return (
            f"its ignored files have {content.ignored_bytes} bytes, more than"
            f" worktrees.archive_bytes ({limits.archive_bytes})"
        )
    saved = content.uncommitted_bytes + content.nested_bytes
    if saved > limits.archive_bytes:
        return (
            f"what is not committed in it has {saved} bytes, more than"
            f" worktrees.archive_bytes ({limits.archive_bytes})"
        )
    return None


def begin_with(receipt: Receipt | None, place: Place) -> Step:
    """The step with which a removal begins, or goes on after it was cut short.

    What lies aside before its content began to go is put back, and all is looked at
    anew. Of a folder that somebody else has removed git still knows something.
    """
    begun = receipt is not None and receipt.has("removing")
    if place == "aside":
        return "removing" if begun else "looked"
    if place == "gone":
        return "branch" if begun else "archived"
    return "looked"


def after(step: Step) -> Step | None:
    """The next step; None after the last one."""
    place = STEPS.index(step) + 1
    return STEPS[place] if place < len(STEPS) else None


def is_disposable(path: str, names: Iterable[str]) -> bool:
    """Whether a part of a path has a name of what can be made again."""
    patterns = tuple(names)
    return any(
        fnmatchcase(part, pattern) for part in path.split("/") for pattern in patterns
    )


def may_forget(receipt: Receipt, *, elsewhere: bool, unmerged_too: bool) -> str | None:
    """Why what was saved of a worktree has to stay; None if it may go with its age.

    `elsewhere`: every commit that is kept for it can be reached in another way, or its
    content has been merged.
    """
    if receipt.closed_at is None:
        return "its removal has not ended"
    if unmerged_too:
        return None
    if any(archive.kind == "files" for archive in receipt.archives):
        return "it is the only copy of files that were never committed"
    if receipt.refs or receipt.bundle is not None:
        return None if elsewhere else "it is the only copy of work that was not merged"
    return None
