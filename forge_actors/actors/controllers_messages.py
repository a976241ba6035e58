"""What is said to the actor of the controllers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from forge_actors.actors.mailbox import Reply
from forge_actors.domain.continuation import Turn
from forge_actors.domain.controllers import By, Controller, Disposition, Wake
from forge_actors.domain.jobs import State

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from forge_actors.domain.changes import Change
    from forge_actors.domain.controller_hosts import ControllerHost, HostAnswer
    from forge_actors.domain.ports import Clock, Saved, WallTimer


class Add(Struct, frozen=True):
    """A new one, as it is to be saved."""

    controller: Controller
    reply: Reply[Controller]


class Remove(Struct, frozen=True):
    name: str
    reply: Reply[Controller]


class Pause(Struct, frozen=True):
    name: str
    why: str
    reply: Reply[Controller]


class Resume(Struct, frozen=True):
    """A person has looked at it: it may go on."""

    name: str
    reply: Reply[Controller]


class Rouse(Struct, frozen=True):
    """Have a controller go on, once for each occurrence."""

    name: str
    wake: str
    by: By
    origin: str
    reply: Reply[Wake]
    #: Something came to pass.
    news: bool = False


class Say(Struct, frozen=True):
    """How a turn ends: of the controller with a name, or of that of a job."""

    name: str | None
    #: The job that says it.
    job: str | None
    disposition: Disposition
    note: str
    mark: str
    reply: Reply[Controller]


class Tell(Struct, frozen=True):
    """All controllers as they are now, by name."""

    reply: Reply[list[Controller]]


class Ended(Struct, frozen=True):
    """The job of a turn has ended."""

    controller: str
    job: str
    state: State


class Looked(Struct, frozen=True):
    """What can be told of such a job."""

    controller: str
    job: str
    turn: Turn


class Answered(Struct, frozen=True):
    """What a host has said; None: nothing, and it is not known what it did."""

    controller: str
    wake: str
    answer: HostAnswer | None
    problem: str = ""


class RepositoryGone(Struct, frozen=True):
    """A repository was removed, and its controllers with it."""

    repo: str


class Due(Struct, frozen=True):
    """The moment has come at which one goes on by itself, or what held it is over."""


Message = (
    Add
    | Remove
    | Pause
    | Resume
    | Rouse
    | Say
    | Tell
    | Ended
    | Looked
    | Answered
    | RepositoryGone
    | Due
)


class ControllerStore(Protocol):
    """What the actor needs of the store."""

    def save(
        self,
        changes: Sequence[Change],
        *,
        then: Callable[[], object] | None = None,
        lazy: bool = False,
    ) -> Saved: ...

    def controllers(self) -> list[tuple[str, str, bytes]]:
        """The id, the name and the body of each that was saved, by name."""

    def wake(self, wake: str) -> bytes | None:
        """What became of an occurrence."""

    def open_wakes(self, controller: str) -> list[bytes]:
        """Those of which nobody knows yet what became, oldest first."""

    def job_known(self, job: str) -> State | None:
        """The state of a job; None if it is not known, or not any more."""

    def when_ended(self, job: str, notify: Callable[[State], None]) -> None:
        """Tell once when a job has ended, at once if it has."""


class Context(Struct, frozen=True):
    """What the actor is given."""

    store: ControllerStore
    clock: Clock
    timer: WallTimer
    #: The host with a name.
    host: Callable[[str], ControllerHost]
    #: What can be seen of the work of a controller from outside.
    seen: Callable[[Controller], str]
    #: The last words of the agent of a job.
    said: Callable[[str], Awaitable[str]]
    #: What the agent is asked on its next turn, which `Wake` began.
    asked: Callable[[Controller, Wake], str]
    #: Those who wait for a controller may ask again.
    freed: Callable[[], object] = lambda: None
    #: Why nothing begins now.
    closed: Callable[[], str | None] = lambda: None
    #: Whether a repository is there, and not removed.
    known: Callable[[str], bool] = lambda _: True
