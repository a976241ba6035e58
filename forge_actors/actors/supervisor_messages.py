"""What the supervisor is told and asked, by its repositories and by the runtime."""

from __future__ import annotations

from msgspec import Struct

from forge_actors.actors import maintenance_messages, repository_messages
from forge_actors.actors.keeper import Keeper
from forge_actors.actors.mailbox import Mailbox, Reply
from forge_actors.actors.tokens import Returned
from forge_actors.domain.accounts import Account, Refusal
from forge_actors.domain.capacity import Limits, Offer, RepositoryLimits, TokenUse
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import Job
from forge_actors.domain.policies import Policy
from forge_actors.domain.recovery import StopReason
from forge_actors.domain.waiting import Waiting

RepositoryMailbox = Mailbox[repository_messages.Message]


class Wanted(Struct, frozen=True):
    """What a repository could start now; replaces what it wanted before."""

    repo: str
    offers: tuple[Offer, ...]


class Open(Struct, frozen=True):
    """The mailbox of a repository's actor, which is woken if it sleeps."""

    repo: str
    reply: Reply[RepositoryMailbox]


class Submitted(Struct, frozen=True):
    """Jobs that were accepted and saved, on their way to their repository."""

    repo: str
    jobs: tuple[Job, ...]


class Ended(Struct, frozen=True):
    """A repository's actor has ended; `error` if it failed."""

    repo: str
    error: Exception | None


class TakeBack(Struct, frozen=True):
    """Try again what was set aside of a repository; the store knows that it is."""

    repo: str


class CareEnded(Struct, frozen=True):
    """Nothing runs any more of a repository that was set aside, or it has an owner."""

    repo: str


class Survey(Struct, frozen=True):
    """The counts at one moment."""

    tokens: dict[str, TokenUse]
    active_repositories: int
    awake: int
    pressure: str | None
    draining: bool
    waiting: int
    #: Why the clean-up does not run any more in this runtime.
    no_clean_up: str | None = None
    #: For how many seconds nothing was heard of what runs: its leases are unconfirmed.
    silence: float | None = None
    #: Of the providers that are closed.
    closed: tuple[Account, ...] = ()


class Count(Struct, frozen=True):
    """The answer is a survey."""

    reply: Reply[Survey]


class MailCounts(Struct, frozen=True):
    """Of each kind of actor: how many messages are unread, of one and of all, and how
    often one has failed."""

    supervisor: int
    repositories: int
    deepest: int
    repository_failures: int
    clean_up: int
    clean_up_failures: int


class CountMail(Struct, frozen=True):
    """The answer is what the mailboxes hold."""

    reply: Reply[MailCounts]


class Place(Struct, frozen=True):
    """Which tokens offers lack, and their places in line; one answer for each.

    With each offer comes how many of its repository are before it, or None if nobody
    wants to know its place, and since when it waits.
    """

    offers: tuple[tuple[Offer, int | None, float], ...]
    reply: Reply[list[Waiting]]


class SetPause(Struct, frozen=True):
    """Begin or end a pause of everything or of a provider, or a drain.

    Answered once durable. With `jobs` what runs there is suspended, or goes on, too.
    """

    scope: str
    on: bool
    jobs: bool
    reply: Reply[None]


class SetPolicy(Struct, frozen=True):
    """Have another policy in force; answered with it once that is durable.

    With a `revision` only if the policy has that one. See `policies.changed`.
    """

    wanted: Policy
    revision: int | None
    narrows: bool
    reply: Reply[Policy]


class ProviderRefused(Struct, frozen=True):
    """A job was refused by its provider, whose account is closed from now on."""

    provider: str
    job: str
    refusal: Refusal


class ClosingsDue(Struct, frozen=True):
    """It is time to look at the accounts of providers, and at the policy."""


class AheadDue(Struct, frozen=True):
    """It is time to look at what waits at the launcher for the end of others."""


class Relocated(Struct, frozen=True):
    """A repository moved, and what its jobs claim with it; that is saved."""

    repo: str


class SetLimits(Struct, frozen=True):
    """Grant by other limits from now on; what runs is left alone.

    The store gives the ledgers that are loaded from now on the limits for repositories.
    """

    limits: Limits
    repositories: RepositoryLimits


class CleanUpEnded(Struct, frozen=True):
    """The clean-up has ended for good."""


class OpenMaintenance(Struct, frozen=True):
    """Who keeps the maintenance actor, and can be asked what that one answers."""

    reply: Reply[Keeper[maintenance_messages.Message]]


class PassDue(Struct, frozen=True):
    """It is time for the safety pass."""


class Stop(Struct, frozen=True):
    """Grant nothing more, stop every worker, end every repository, then end.

    `because` is saved first, and nothing is dispatched after it.
    """

    reason: StopReason
    because: Event | None = None


Message = (
    Wanted
    | Returned
    | Open
    | Submitted
    | Ended
    | TakeBack
    | CareEnded
    | Count
    | CountMail
    | Place
    | Relocated
    | AheadDue
    | SetLimits
    | SetPause
    | SetPolicy
    | ProviderRefused
    | ClosingsDue
    | CleanUpEnded
    | OpenMaintenance
    | PassDue
    | Stop
)
