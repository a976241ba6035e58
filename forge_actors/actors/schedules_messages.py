"""What is said to the actor of the schedules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from forge_actors.actors.mailbox import Reply
from forge_actors.domain.changes import Change
from forge_actors.domain.jobs import State
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.schedule_edits import Difference
from forge_actors.domain.schedules import (
    Definition,
    Hindrance,
    Occurrence,
    Pending,
    Schedule,
)
from forge_actors.domain.triggers import Window

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from forge_actors.domain.ports import Clock, Saved, WallTimer


class Put(Struct, frozen=True):
    """Add a schedule, or with a revision change the one that has its name."""

    definition: Definition
    #: None adds; a number is the revision that is to be changed, 0 any.
    revision: int | None
    reply: Reply[Schedule]
    #: Of one that waits for something: how far that is seen already.
    baseline: str | None = None


class Apply(Struct, frozen=True):
    """Have the schedules of one source be these and no others, all of it or nothing."""

    source: str
    definitions: tuple[Definition, ...]
    #: The revisions that its schedules had when somebody looked; None: as they are.
    seen: dict[str, int] | None
    #: Says what is saved along with them, or refuses.
    along: Callable[[], Sequence[Change]]
    reply: Reply[Difference]
    #: By name, of those that wait for something: how far that is seen already.
    baselines: dict[str, str | None] = {}


class Pause(Struct, frozen=True):
    name: str
    why: str
    reply: Reply[Schedule]


class Resume(Struct, frozen=True):
    name: str
    reply: Reply[Schedule]
    baseline: str | None = None


class Remove(Struct, frozen=True):
    name: str
    reply: Reply[Schedule]


class RunNow(Struct, frozen=True):
    """Run it once more, whatever holds its windows back; `key` names this wish."""

    name: str
    key: str
    reply: Reply[Occurrence]


class Tell(Struct, frozen=True):
    """All schedules as they are now, by name."""

    reply: Reply[list[Schedule]]


class Find(Struct, frozen=True):
    """The schedule with this id as it is now, if it is there and active."""

    schedule: str
    reply: Reply[Schedule | None]


class Ended(Struct, frozen=True):
    """A job of a schedule has ended."""

    schedule: str
    job: str
    state: State


class Submitted(Struct, frozen=True):
    """What became of a window that was to run: a job, or why there is none. None: it
    has woken a session that has none."""

    schedule: str
    entry: Pending
    reason: str
    outcome: str | Exception | None


class Signalled(Struct, frozen=True):
    """What a schedule waits for has come to pass, or is seen further than before.

    Both are saved together. So what told it may tell again, after a restart, whatever
    has come to pass since `Progress.seen`: nothing is lost, and nothing comes twice.
    """

    schedule: str
    #: The `Progress.begun` that it goes on from; of another one it does not count.
    begun: int
    seen: str | None
    #: Oldest first; of each the key is its own for ever. At most `MAX_CATCH_UP`.
    windows: tuple[Window, ...] = ()
    #: Windows before those, too many to be told one by one.
    earlier: int = 0
    #: Why what comes to pass from now on may not be seen; empty: it is.
    blind: str = ""


class Stirred(Struct, frozen=True):
    """Something is otherwise in a repository: what it held back is looked at again."""

    repo: str


class RepositoryGone(Struct, frozen=True):
    """A repository was removed, and its schedules with it."""

    repo: str


class HeldNoMore(Struct, frozen=True):
    """What held back all schedules may be over."""


class Due(Struct, frozen=True):
    """The moment has come, or the clock was set."""


Message = (
    Put
    | Apply
    | Pause
    | Resume
    | Remove
    | RunNow
    | Tell
    | Find
    | Ended
    | Submitted
    | Signalled
    | Stirred
    | RepositoryGone
    | HeldNoMore
    | Due
)


class ScheduleStore(Protocol):
    """What the actor needs of the store."""

    def save(
        self,
        changes: Sequence[Change],
        *,
        then: Callable[[], object] | None = None,
        lazy: bool = False,
    ) -> Saved: ...

    def schedules(self) -> list[tuple[str, str, bytes]]:
        """The id, the name and the body of each that was saved."""

    def job_of_request(self, request_id: str) -> str | None:
        """The job that was accepted under a request id, the forgotten ones included."""

    def when_ended(self, job: str, notify: Callable[[State], None]) -> None:
        """Tell once when a job has ended, at once if it has."""

    def ran(self, job: str) -> float:
        """Seconds that the attempts of a job that has ended ran."""

    def decided(self, occurrence: str) -> bool:
        """Whether a window was decided, or is deferred."""


class Source(Protocol):
    """Sees what schedules wait for, and tells the actor of it: `Signalled`.

    Each of several heeds the schedules whose cause it knows. It is told of every one
    that waits, as it is saved: at the start, when it is made, and each time that it was
    changed. What it has to do for it must not wait here.
    """

    def follow(self, schedule: Schedule) -> None:
        """Tell of it from `progress.seen` on, or from now on if that is None; with the
        same `begun` and trigger it is one that is followed already."""

    def leave(self, schedule: str) -> None:
        """Tell of it no more: it is gone, is not active, or waits for something else.
        It may never have been followed."""


class Context(Struct, frozen=True):
    """What the actor is given."""

    store: ScheduleStore
    clock: Clock
    timer: WallTimer
    #: Accepts a job, and is durable when it returns.
    submit: Callable[[JobRequest], Awaitable[str]]
    #: Has the controller of a schedule go on, once for the id of a request; its job.
    wake: Callable[[Schedule, JobRequest], Awaitable[str | None]]
    #: Asks a job to end.
    cancel: Callable[[str], Awaitable[object]]
    #: Whether the checkout of a repository has changes; None: not known.
    dirty: Callable[[str], bool | None]
    #: Why no window of any schedule runs now; None if they do.
    closed: Callable[[], str | None] = lambda: None
    #: What holds back the schedules of a repository that ask for it, and why.
    hindrances: Callable[[str], dict[Hindrance, str]] = lambda _: {}
    #: Whether a repository is there, and not removed.
    known: Callable[[str], bool] = lambda _: True
    sources: tuple[Source, ...] = ()
    #: The repositories in which something may be held back. Of these alone it has to
    #: be told that they were stirred.
    held: set[str] = set()
