"""What the lookout is told and given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from forge_actors.actors.schedules_messages import Signalled
from forge_actors.domain.causes import Traits
from forge_actors.domain.events import Event
from forge_actors.domain.looking import Look
from forge_actors.domain.ports import Clock
from forge_actors.domain.repositories import Repository
from forge_actors.domain.schedules import Schedule

if TYPE_CHECKING:
    from forge_actors.domain.jobs import State


class Follow(Struct, frozen=True):
    """A schedule waits, for what this actor sees."""

    schedule: Schedule


class Leave(Struct, frozen=True):
    schedule: str


class JobsEnded(Struct, frozen=True):
    """Jobs of a repository have ended since the last time that this was read."""

    repo: str


class Looked(Struct, frozen=True):
    """Its checkout was looked at, since something changed in it."""

    repo: str


class Commits(Struct, frozen=True):
    """The commits of a repository, as they were read, or why they could not be."""

    repo: str
    #: For which schedules they were read, each as often as it had begun.
    of: frozenset[tuple[str, int]]
    #: By branch; those of remotes are `remotes/...`.
    heads: Mapping[str, str] = {}
    #: That which is checked out.
    head: str | None = None
    #: For each pattern and commit before: the files that are other ones now.
    changed: Mapping[tuple[str, str | None], Sequence[str] | None] = {}
    problem: str = ""


Message = Follow | Leave | JobsEnded | Looked | Commits


class CommitReader(Protocol):
    """Reads commits out of a repository."""

    async def heads(self, repository: Repository) -> tuple[dict[str, str], str | None]:
        """The commit of each branch, and of what is checked out.

        Raises:
            Unavailable, WorktreeFailed: git cannot tell.
        """

    async def changed(
        self, repository: Repository, before: str | None, now: str, pattern: str
    ) -> list[str] | None:
        """The files that are other ones in a commit than in one before, of those that a
        pattern means; None: that one is gone.

        Raises:
            Unavailable, WorktreeFailed: git cannot tell.
        """


class EndsStore(Protocol):
    """What the lookout needs of the store."""

    def last_event(self) -> int:
        """The number of the last event that is durable."""

    def find_events(
        self, after: int, until: int, fields: Mapping[str, Sequence[str]]
    ) -> list[Event]:
        """The durable events up to `until` whose fields have one of the values."""

    def hear_ends(self, repo: str, notify: Callable[[], object] | None) -> None:
        """Call `notify` whenever a job of the repository has ended; None: no more."""

    def traits(self, job: str) -> Traits | None:
        """What a job is; None if it is forgotten."""

    def state(self, job: str) -> State | None:
        """How far a job is, as far as that is durable."""

    def window_of(self, job: str) -> str | None:
        """The key of the window of a schedule that has this job."""

    def look(self, repo: str) -> Look | None: ...


class Context(Struct, frozen=True):
    """What the actor is given."""

    store: EndsStore
    clock: Clock
    commits: CommitReader
    #: A repository that is not removed.
    repository: Callable[[str], Repository | None]
    #: Has the files of these repositories be watched, however long they have no job.
    watch: Callable[[frozenset[str]], object]
    #: Tells the schedules.
    tell: Callable[[Signalled], object]
