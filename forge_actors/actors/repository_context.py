"""What a repository's actor is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.actors.attempts import Worker
from forge_actors.actors.mailbox import Mailbox
from forge_actors.actors.repository_messages import (
    AccountsChanged,
    Message,
    PolicyChanged,
)
from forge_actors.actors.tokens import Grant
from forge_actors.domain.accounts import Refusal
from forge_actors.domain.capacity import Offer
from forge_actors.domain.jobs import Job
from forge_actors.domain.scopes import Pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.launch import LaunchOrder, Receipt
    from forge_actors.domain.ports import Clock, Launcher, Store


class Context(Struct, frozen=True):
    """What a repository actor is given by its supervisor."""

    store: Store
    launcher: Launcher
    clock: Clock
    #: Tells the supervisor what could start now.
    #: The best priority of the jobs that the end of one of its own may let start.
    rival: Callable[[str, int | None], object]
    wanted: Callable[[str, tuple[Offer, ...]], None]
    make_worker: Callable[[Grant, Mailbox[Message]], Worker]
    #: Builds the order of a dispatched job.
    make_order: Callable[[Job], LaunchOrder]
    #: Says that a repository's folder is gone, or None if it is there.
    gone: Callable[[str], str | None]
    #: The receipt of an attempt that ended while nobody owned it.
    kept_receipt: Callable[[str, int], Receipt | None]
    #: The tokens of a job that runs already. Asked for only while an actor starts: the
    #: supervisor, whose counts it changes, waits for that.
    adopt: Callable[[Job], Grant]
    #: The outcome of an attempt is durable: nobody needs its receipt any more.
    forget: Callable[[str, int], None]
    #: Keeps one for whoever owns the repository next.
    keep_receipt: Callable[[Receipt], None]
    #: The pauses that the supervisor owns.
    pauses: Callable[[], tuple[Pause, ...]]
    #: The closed accounts that it owns.
    accounts: Callable[[], AccountsChanged]
    #: The policy that it owns.
    policy: Callable[[], PolicyChanged]
    #: Tells it that a provider has refused a job.
    refused: Callable[[Job, Refusal], None]
    #: Tells it that an attempt of an agent is over, which may have spent a budget.
    used: Callable[[], None]
    #: Whether a repository's actor is to set aside what makes it fail.
    careful: Callable[[str], bool]
    #: Tells it that a grant was used, and what for is saved.
    settled: Callable[[], None]
    #: Somebody may be there to see to what refuses a job, such as a login.
    attended: bool = True
