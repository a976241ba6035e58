"""Grants: the tokens of one job on their way through memory channels, and their counts.

The supervisor's task alone counts tokens. It sends a grant with all that one job needs.
Holding it is the only right to launch; however the holder ends, the grant goes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from msgspec import Struct, structs

from forge_actors.domain.capacity import WORKERS, Capacity, TokenUse, offer_of
from forge_actors.domain.errors import MailboxClosed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from forge_actors.domain.capacity import Limits, Offer
    from forge_actors.domain.jobs import Job
    from forge_actors.domain.launch import LaunchOrder


class Returned(Struct, frozen=True):
    """The tokens of a grant are free again."""

    grant: Grant


class Grant:
    """All the tokens of one job. Use as a context manager around the job's whole life.

    Invariant: the supervisor is told of its return at most once.
    """

    __slots__ = (
        "_back",
        "_notify",
        "_on_launch",
        "_passed",
        "ahead",
        "attempt",
        "id",
        "issued_at",
        "job",
        "launched",
        "ownerless",
        "prepared",
        "ran",
        "repo",
        "returned",
        "room",
        "tokens",
        "withdrawn",
    )

    def __init__(
        self,
        grant_id: str,
        repo: str,
        tokens: tuple[str, ...],
        back: Callable[[Returned], None],
        on_launch: Callable[[], object] = lambda: None,
    ) -> None:
        self.id = grant_id
        self.repo = repo
        self.tokens = tokens
        #: The job it is used for, once its repository has chosen one.
        self.job: str | None = None
        self.attempt = 0
        self.returned = False
        #: A pause began before it was used: it is to go back as it came.
        self.withdrawn = False
        #: What it is used for runs, but nobody watches it.
        self.ownerless = False
        #: What it is used for was given to the launcher, or something has to be made
        #: for that first.
        self.launched = self.prepared = False
        #: Its tokens are still those of others; and when it was issued so.
        self.ahead = False
        self.issued_at: float | None = None
        #: How many workers there are for it and all that came before it.
        self.room: int | None = None
        #: Seconds for which what it was used for ran.
        self.ran: float | None = None
        self._notify: Callable[[], object] | None = None
        self._passed = False
        self._back = back
        self._on_launch = on_launch

    def __enter__(self) -> Self:
        self._passed = False
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._passed:
            self.give_back()

    def pass_on(self) -> None:
        """Somebody else gives it back: leaving this block no longer does."""
        self._passed = True

    def use(self, job: Job) -> None:
        """Use it for the present attempt of this job."""
        self.job, self.attempt = job.id, job.attempt

    def launch(self) -> None:
        """What it is used for is with the launcher."""
        self.launched = True
        self._on_launch()

    def ordered(self, order: LaunchOrder) -> LaunchOrder:
        """The order of the job that it is used for."""
        return order if self.room is None else structs.replace(order, room=self.room)

    def let_go(self) -> None:
        """What it is used for runs on: the tokens stay taken, for its next owner."""
        self.ownerless = self._passed = True

    def once_filled(self, notify: Callable[[], object]) -> bool:
        """Have the last of these called when it has its tokens; False if it has."""
        if self.ahead:
            self._notify = notify
        return self.ahead

    def fill(self) -> None:
        """It has its tokens now."""
        self.ahead = False
        notify, self._notify = self._notify, None
        if notify is not None:
            notify()

    def give_back(self) -> None:
        if self.returned:
            return
        self.returned = True
        try:  # `suppress` costs as much as all else here, for every job
            self._back(Returned(self))
        except MailboxClosed:
            return  # a supervisor that has ended took its counts with it


class Grants:
    """Every grant that is out, and so every token in use. The supervisor's own."""

    def __init__(
        self,
        limits: Limits,
        back: Callable[[Returned], None],
        settled: Callable[[], None],
    ) -> None:
        self.capacity = Capacity(limits)
        self._back = back
        self._settled = settled
        #: One has come back since the last time that all had settled.
        self.came_back = False
        #: Called once, when all with tokens are with the launcher.
        self.once_launched: Callable[[], object] | None = None
        self._out: dict[str, Grant] = {}
        #: Of them those that no job used when somebody last looked, and those that were
        #: not with the launcher: all that are out would be too many to look at.
        self._unused: dict[str, Grant] = {}
        self._unlaunched: dict[str, Grant] = {}
        #: Those that have no tokens yet, in the order in which they get them.
        self.ahead: dict[str, Grant] = {}
        self._last = 0

    def __bool__(self) -> bool:
        return bool(self._out)

    def issue(self, offer: Offer) -> Grant:
        """A grant of what the job of this offer needs, all of which is free."""
        grant = self._make(offer)
        self.capacity.take(grant.id, offer.repo, offer.tokens)
        return grant

    def _make(self, offer: Offer) -> Grant:
        self._last += 1
        name, launched = f"g{self._last}", self._launched
        grant = Grant(name, offer.repo, offer.tokens, self._back, launched)
        self._out[name] = self._unused[name] = self._unlaunched[name] = grant
        return grant

    def _launched(self) -> None:
        notify = self.once_launched
        if notify is not None and not self.preparing:
            self.once_launched = None
            notify()

    def issue_ahead(self, offer: Offer, now: float) -> Grant:
        """A grant for the job of this offer, which gets its tokens when others end."""
        grant = self._make(offer)
        grant.ahead, grant.issued_at = True, now
        grant.room = self.capacity.used(WORKERS)
        self.ahead[grant.id] = grant
        self.capacity.take(grant.id, offer.repo, ())
        return grant

    def adopt(self, job: Job) -> Grant:
        """The grant of a job that runs already, whatever the limits are now.

        That which it has, if its last owner let go of it, else a new one.
        """
        for grant in self._out.values():
            if grant.job == job.id and grant.ownerless:
                grant.ownerless = False
                return grant
        grant = self.issue(offer_of(job))
        grant.use(job)
        return grant

    @property
    def preparing(self) -> bool:
        """Somebody has tokens for what was not given to the launcher yet."""
        for grant in tuple(self._unlaunched.values()):
            if grant.launched:
                del self._unlaunched[grant.id]
            elif not grant.ahead:
                return True
        return False

    def ownerless(self, repo: str) -> list[Grant]:
        """Those of a repository whose owner let go of them."""
        return [g for g in self._out.values() if g.repo == repo and g.ownerless]

    def take_back(self, grant: Grant) -> None:
        del self._out[grant.id]
        self._unused.pop(grant.id, None)
        self._unlaunched.pop(grant.id, None)
        tokens = () if grant.ahead else grant.tokens
        self.capacity.give_back(grant.id, grant.repo, tokens)
        if self.ahead:
            self.ahead.pop(grant.id, None)
            self._fill_first()
        self.came_back = True

    def _fill_first(self) -> None:
        """A worker came free: the first that is ahead has begun in its place."""
        for grant in self.ahead.values():
            assert grant.room is not None, "it was issued ahead"
            if self.capacity.used(WORKERS) < grant.room:
                self.fill(grant)
            return

    def fill(self, grant: Grant) -> None:
        """Let one that is ahead have its tokens."""
        del self.ahead[grant.id]
        self.capacity.take(grant.id, grant.repo, grant.tokens)
        grant.fill()

    def settle(self) -> None:
        """Call `settled`, unless a grant is on its way to a job that is to use it."""
        for grant in tuple(self._unused.values()):
            if grant.job is None:
                return
            del self._unused[grant.id]
        self.came_back = False
        self._settled()

    def withdraw(self, covered: Callable[[tuple[str, ...]], bool]) -> None:
        """Of those that no job uses yet, give none of the covered ones to any."""
        for grant in self._out.values():
            if grant.job is None and covered(grant.tokens):
                grant.withdrawn = True

    def uses(self) -> dict[str, TokenUse]:
        """Who uses what, by kind of token."""
        capacity = self.capacity
        return {kind: capacity.use(kind, self.jobs_of) for kind in capacity.kinds()}

    def jobs_of(self, grants: Iterable[str]) -> tuple[str, ...]:
        """The jobs that grants with these ids are used for."""
        return tuple(job for g in grants if (job := self._out[g].job) is not None)
