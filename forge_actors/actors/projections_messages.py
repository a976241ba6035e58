"""What the projections actor is told and given, and the board where news are left."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from forge_actors.domain.git_status import Sample
from forge_actors.domain.looking import ADDED, JOB_ENDED, LookLimits, Unwatchable
from forge_actors.domain.ports import Clock, FileWatch, StatusSampler, Store
from forge_actors.domain.repositories import Repository


class BoardRang(Struct, frozen=True):
    """There is something on the board."""


class FilesChanged(Struct, frozen=True):
    repos: frozenset[str]


class Watched(Struct, frozen=True):
    """A repository is watched from now on; or why it cannot be."""

    repo: str
    problem: Unwatchable | None


class Sampled(Struct, frozen=True):
    """What came of a sample that was begun at `began`, for the mark `nonce`."""

    repo: str
    nonce: int
    began: float
    busy: bool
    fence: int
    assumed: float
    sample: Sample


class Due(Struct, frozen=True):
    """The moment came that the alarm was set for."""


class LimitsChanged(Struct, frozen=True):
    pass


Message = BoardRang | FilesChanged | Watched | Sampled | Due | LimitsChanged


class Board:
    """The news of repositories. Whoever has some leaves it here and goes on at once."""

    def __init__(self) -> None:
        self._news: dict[str, str | None] = {}
        #: Those that are to be watched however long they have no job.
        self.awaited: frozenset[str] = frozenset()
        #: These are others than when the news were taken last.
        self._others = False
        self._ring: Callable[[], object] | None = None

    def ended(self, repo: str | None) -> None:
        """A job of it has ended."""
        assert repo is not None, "the event of a job names its repository"
        self._news[repo] = JOB_ENDED
        if self._ring is not None:
            self._rings()

    def added(self, repo: str) -> None:
        """It is known from now on, or is somewhere else."""
        self._news.setdefault(repo, ADDED)
        self._rings()

    def used(self, repo: str) -> None:
        """It has jobs."""
        self._news.setdefault(repo, None)
        self._rings()

    def wait_for(self, repos: frozenset[str]) -> None:
        """Somebody waits for something to come to pass in these."""
        self.awaited, self._others = repos, True
        self._rings()

    def take(self) -> dict[str, str | None]:
        """The news since the last time; without a reason it is only used."""
        news, self._news, self._others = self._news, {}, False
        return news

    def arm(self, ring: Callable[[], object]) -> None:
        """Call `ring` once, when there is something; at once if there is."""
        self._ring = ring
        if self._news or self._others:
            self._rings()

    def disarm(self) -> None:
        self._ring = None

    def _rings(self) -> None:
        ring, self._ring = self._ring, None
        if ring is not None:
            ring()


class Context(Struct, frozen=True):
    """What the projections are given by the runtime."""

    store: Store
    sampler: StatusSampler
    watch: FileWatch
    clock: Clock
    board: Board
    limits: Callable[[], LookLimits]
    #: A repository that is not removed.
    repository: Callable[[str], Repository | None]
    #: The number of its last dispatch.
    fence: Callable[[str], int]
    #: How many of its jobs have not ended, and whether any of them runs.
    active: Callable[[str], int]
    running: Callable[[str], bool]
    #: Whether the disk takes anything now.
    saving: Callable[[], bool]
    #: Told why no files are watched; None: they are, as far as they should be.
    unwatched: Callable[[str | None], object] = lambda _: None
    #: Told of each repository whose files are watched now, or why they cannot be.
    watched: Callable[[str, str | None], object] = lambda _, __: None
    #: Told of each repository that was looked at.
    looked: Callable[[str], object] = lambda _: None
