"""Repository: a git repository by its common directory, whatever its path is called."""

from __future__ import annotations

import re

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.projections import Attention, LeaseView, StatusView
from forge_actors.domain.trust import TrustNote

_NAME = re.compile(r"[a-z0-9._-]{1,64}")


class Checkout(Struct, frozen=True):
    """What git says of a folder: its work tree and the repository it belongs to."""

    #: Top folder of the work tree, links resolved.
    root: str
    #: Git common directory, links resolved; shared by all work trees of a repository.
    common_dir: str
    device: int
    inode: int
    #: Work tree and common directory belong to the repository's first checkout.
    main: bool


class Identity(Struct, frozen=True):
    """What tells the repository of a git common directory from every other one.

    The inode is lost when it moves to another disk, and used again by another one when
    it is deleted; the ids in it move with it. It has more than one id when homes gave
    it theirs, or when it is a copy and has the ids of its original too.
    """

    device: int
    inode: int
    #: The ids it was registered under, newest first.
    ids: tuple[str, ...] = ()


class Repository(Struct, frozen=True):
    """A registered repository. Its id never changes; its name is unique."""

    id: str
    name: str
    path: str
    common_dir: str
    device: int
    inode: int
    added_at: float
    enabled: bool = True
    removed_at: float | None = None
    fence: int = 0
    last_dispatch: float = 0.0


class RepositoryView(Struct, frozen=True):
    """A repository as readers see it."""

    id: str
    name: str
    path: str
    enabled: bool
    waiting: int
    running: int
    added_at: str
    note: str | None = None
    #: As it was when its checkout was looked at last.
    status: StatusView = StatusView()
    #: How many of its jobs need a person.
    attention: int = 0


class RepositoryDetails(RepositoryView, frozen=True, kw_only=True):
    """Everything about one repository."""

    common_dir: str
    #: The number of its last dispatch, and when that was; None: there was none.
    fence: int
    last_dispatch: str | None
    #: How many jobs it has in each state that any of them is in.
    counts: dict[str, int]
    #: The ids of the jobs that are dispatched or running.
    running_jobs: list[str]
    #: What those hold.
    leases: list[LeaseView] = []
    #: The newest jobs that need a person.
    attention_jobs: list[Attention] = []
    #: What is trusted of what it brings along; null: no service was there to look.
    trust: TrustNote | None = None


def check_name(name: str, *, field: str = "name") -> str:
    """`name` if it may name a repository.

    Raises:
        InvalidInput: it may not.
    """
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            field,
            f"{name!r} is no repository name: use 1 to 64 of a-z 0-9 . _ -",
        )
    return name


def name_from_folder(folder: str) -> str:
    """The default name of a repository: its folder's, made fit."""
    fit = re.sub(r"[^a-z0-9._-]+", "-", folder.lower()).strip("-")[:64]
    return fit or "repository"
