"""Accounts: whether what a provider sells can be used now, one for each provider.

An account is open, or closed until a moment, or closed until somebody sees to it. The
first job that is refused closes it. Where the end was told it opens then; where nobody
knows the end, one job tries after a while that doubles, and what becomes of that job
decides. What waited returns one by one, or all would be refused again at once.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from forge_actors.domain.agents import LimitKind
from forge_actors.domain.changes import AccountChanged
from forge_actors.domain.day_budgets import SpentBudget
from forge_actors.domain.events import Event
from forge_actors.domain.redaction import bounded, redact
from forge_actors.domain.scopes import PROVIDER, provider_in
from forge_actors.domain.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from forge_actors.domain.agents import LimitHit
    from forge_actors.domain.changes import Change
    from forge_actors.domain.waiting import WaitingKind

#: What keeps a closed account closed until a person has seen to it.
ATTENTION: frozenset[LimitKind] = frozenset({"auth", "budget"})
#: What one job waits for by itself, as it is soon over.
SHORT: frozenset[LimitKind] = frozenset({"rate", "overload"})

#: Seconds after the stated end of a limit at which it is believed to be over.
RESET_MARGIN = 0.5
#: A stated end that is later than this is not believed, in seconds from now.
LONGEST_LIMIT = 40 * 86400.0
#: The first wait of a job that was refused for a short time, and the longest; seconds.
FIRST_BACKOFF, LONGEST_BACKOFF = 5.0, 300.0
#: Refusals after which a short limit is taken for one whose end nobody knows.
MOST_BACKOFFS = 6
#: Seconds to the first try of a closed account whose end is not known, and the most.
FIRST_TRY, LONGEST_TRY = 60.0, 3600.0
#: Seconds after which a job that tries is believed to be served.
SERVED_AFTER = 60.0
#: Seconds from one start to the next while jobs return, and the part of them by which
#: it is shorter or longer by chance.
RETURN_GAP, RETURN_JITTER = 1.0, 0.25
#: Seconds after an opening in which starts keep that distance, however few there are.
RETURN_SECONDS = 60.0
#: Seconds for which an open account remembers how often it was tried.
REMEMBERED = 600.0
#: Why a job waits that was refused for a short time.
BACKS_OFF = "its provider refused it for the moment"
#: What a person can do where a budget is spent.
ALLOW_MORE = "a larger one, and forge-actors settings reload, let it go on at once"
#: Characters of what a program said that are kept.
MAX_DETAIL = 500
_MOST_DOUBLINGS = 20


class Refusal(Struct, frozen=True, omit_defaults=True):
    """What one refused attempt means. With `delay` only its job waits so long; else its
    provider is closed, until `retry_at` if that was told."""

    reason: LimitKind
    detail: str = ""
    retry_at: float | None = None
    delay: float | None = None


def refusal_of(
    hit: LimitHit, job: str, refused: int, now: float, *, has_account: bool
) -> Refusal:
    """What an attempt of a job means that was refused, after `refused` others.

    One that has passed is no end: what refuses now does not end in the past.
    """
    detail = bounded(redact(hit.text.strip()), MAX_DETAIL)
    told = hit.retry_at
    if told is not None and not now < told + RESET_MARGIN <= now + LONGEST_LIMIT:
        told = None
    wait = 0.0 if told is None else told - now
    alone = hit.kind in SHORT and refused < MOST_BACKOFFS and wait <= LONGEST_BACKOFF
    if alone or not has_account:
        longest = LONGEST_BACKOFF if has_account else LONGEST_TRY
        doubled = FIRST_BACKOFF * 2 ** min(refused, _MOST_DOUBLINGS)
        delay = max(wait, min(longest, doubled)) * (1.0 + RETURN_JITTER * _chance(job))
        return Refusal(hit.kind, detail, delay=min(delay, LONGEST_TRY))
    if hit.kind in ATTENTION or told is None:
        return Refusal(hit.kind, detail)
    return Refusal(hit.kind, detail, told + RESET_MARGIN)


class Account(Struct, frozen=True):
    """The account of one provider: as it is since a moment, and why it was closed."""

    provider: str
    open: bool
    since: float
    reason: LimitKind
    #: The job that found out.
    job: str | None = None
    #: When it opens or is tried; None while it is open, or until somebody opens it.
    retry_at: float | None = None
    #: That moment was told, and not guessed.
    stated: bool = False
    #: How often in a row it was closed without a stated end.
    tries: int = 0
    detail: str = ""

    @property
    def token(self) -> str:
        return f"{PROVIDER}{self.provider}"


class AccountView(Struct, frozen=True):
    """A closed account as readers see it."""

    reason: str
    since: str
    #: Null: until somebody opens it. Not `stated`: one job tries then.
    until: str | None
    stated: bool
    job: str | None
    detail: str


class _Trial(Struct):
    """A closed account is tried: by this grant since then, or by the next one."""

    grant: str | None = None
    since: float = 0.0


class Accounts:
    """Every account that was closed once. Only the supervisor's task holds one.

    Invariant: while an account is closed nothing of it is granted, but for one job at a
    time once `retry_at` has come.
    """

    def __init__(self, known: Iterable[Account] = (), now: float = 0.0) -> None:
        self._known = {each.provider: _taken_in(each, now) for each in known}
        self._trials: dict[str, _Trial] = {}
        #: Of those whose jobs return: when the next one may start.
        self._next: dict[str, float] = {
            each.provider: now
            for each in self._known.values()
            if each.open and now < each.since + RETURN_SECONDS
        }

    def __iter__(self) -> Iterator[Account]:
        return iter(self._known.values())

    # -- moves -----------------------------------------------------------------------

    def refused(
        self, provider: str, job: str, refusal: Refusal, now: float
    ) -> list[Change]:
        """A job was refused: its account is closed from now on."""
        known = self._known.get(provider)
        tries = 0
        if known is not None and (not known.open or now < known.since + REMEMBERED):
            tries = known.tries
        closed = known is not None and not known.open
        retry_at, stated = refusal.retry_at, refusal.retry_at is not None
        if refusal.reason in ATTENTION:
            retry_at = None
        elif retry_at is None:
            if closed and provider not in self._trials:
                # One that began before it was closed tells nothing new.
                return []
            distance = FIRST_TRY * 2 ** min(tries, _MOST_DOUBLINGS)
            retry_at, tries = now + min(LONGEST_TRY, distance), tries + 1
        if known is not None and closed:
            later = known.retry_at is None or (
                known.stated and (retry_at or 0.0) <= known.retry_at
            )
            if known.reason in ATTENTION or (later and stated):
                return []
        self._trials.pop(provider, None)
        self._next.pop(provider, None)
        account = Account(
            provider,
            open=False,
            since=known.since if known is not None and closed else now,
            reason=refusal.reason,
            job=job,
            retry_at=retry_at,
            stated=stated,
            tries=0 if stated else tries,
            detail=refusal.detail,
        )
        return [self._changed(account, "provider_closed", now)]

    def opened(self, provider: str, now: float, why: str) -> list[Change]:
        """It can be used again; nothing changes if it is open."""
        known = self._known.get(provider)
        if known is None or known.open:
            return []
        self._trials.pop(provider, None)
        self._next[provider] = now
        account = structs.replace(
            known, open=True, since=now, retry_at=None, stated=False
        )
        return [self._changed(account, "provider_opened", now, why)]

    def pass_time(self, now: float) -> tuple[list[Change], bool]:
        """What the moment brings, and whether an account is another one than before."""
        changes: list[Change] = []
        begun = False
        for account in tuple(self):
            name, due = account.provider, account.retry_at
            trial = self._trials.get(name)
            if trial is not None:
                served = trial.grant is not None and now >= trial.since + SERVED_AFTER
                if served:
                    changes += self.opened(name, now, "tried")
            elif due is not None and due <= now:
                if account.stated:
                    changes += self.opened(name, now, "reset")
                else:
                    self._trials[name], begun = _Trial(), True
        return changes, begun or bool(changes)

    def granted(
        self, tokens: Iterable[str], grant: str, now: float, gap: float = RETURN_GAP
    ) -> bool:
        """A grant was given; whether that closes anything for the moment."""
        if not (self._trials or self._next):
            return False
        name = self._of(tokens)
        if name is None:
            return False
        trial = self._trials.get(name)
        if trial is not None:
            trial.grant, trial.since = grant, now
            return True
        if name not in self._next:
            return False
        jitter = RETURN_JITTER * (2.0 * _chance(f"{name}:{grant}") - 1.0)
        self._next[name] = now + gap * (1.0 + jitter)
        return True

    def returned(
        self, tokens: Iterable[str], grant: str, now: float, *, used: bool
    ) -> list[Change] | None:
        """A grant came back, and nobody said that it was refused. None: it tried
        nothing."""
        if not self._trials:
            return None
        name = self._of(tokens)
        trial = None if name is None else self._trials.get(name)
        if name is None or trial is None or trial.grant != grant:
            return None
        if used:
            return self.opened(name, now, "tried")
        trial.grant = None  # the next one tries
        return []

    def all_returned(self, wanted: frozenset[str], now: float) -> None:
        """These tokens are still waited for: all others have no jobs that return."""
        for name in tuple(self._next):
            since = self._known[name].since
            if f"{PROVIDER}{name}" not in wanted and now >= since + RETURN_SECONDS:
                del self._next[name]

    # -- questions -------------------------------------------------------------------

    @property
    def closed(self) -> tuple[Account, ...]:
        return tuple(each for each in self if not each.open)

    @property
    def tried(self) -> frozenset[str]:
        """The tokens of those closed ones that a job may try."""
        return frozenset(f"{PROVIDER}{name}" for name in self._trials)

    @property
    def returning(self) -> frozenset[str]:
        """The tokens of those whose jobs return one by one."""
        return frozenset(f"{PROVIDER}{name}" for name in self._next)

    def closed_tokens(self, now: float) -> frozenset[str]:
        """The tokens of which nothing may be granted now."""
        closed = set()
        for account in self:
            trial = self._trials.get(account.provider)
            if account.open:
                barred = self._next.get(account.provider, now) > now
            else:
                barred = trial is None or trial.grant is not None
            if barred:
                closed.add(account.token)
        return frozenset(closed)

    def next_moment(self, now: float) -> float | None:
        """When one of them is another one by itself."""
        moments = [due for due in self._next.values() if due > now]
        for account in self.closed:
            trial = self._trials.get(account.provider)
            if trial is None:
                if account.retry_at is not None:
                    moments.append(account.retry_at)
            elif trial.grant is not None:
                moments.append(trial.since + SERVED_AFTER)
        return min(moments, default=None)

    # -- inside ----------------------------------------------------------------------

    def _of(self, tokens: Iterable[str]) -> str | None:
        """The provider of a grant, if its account was ever closed."""
        name = provider_in(tokens)
        return name if name in self._known else None

    def _changed(
        self, account: Account, kind: str, now: float, why: str | None = None
    ) -> Change:
        self._known[account.provider] = account
        data: dict[str, object] = {"provider": account.provider}
        if why is not None:
            data["reason"] = why
        else:
            data |= {"reason": account.reason, "until": account.retry_at}
            data["stated"] = account.stated
            data["by"] = account.job
        return AccountChanged(account, Event(kind, now, data=data))


def waiting_for(account: Account | SpentBudget) -> Waiting:
    """What a job with a closed account, or a spent budget, waits for."""
    if isinstance(account, SpentBudget):
        detail = f"{account.detail}; {ALLOW_MORE}"
        return Waiting("limit", account.since, detail, until=account.until)
    kind: WaitingKind = "agent" if account.reason == "auth" else "limit"
    detail = describe_closed(account)
    return Waiting(kind, account.since, detail, until=account.retry_at)


def describe_closed(account: Account) -> str:
    """Why a job with this account waits, and what a person can do."""
    words = {
        "usage": "has used up what its account may use",
        "rate": "refuses: too many requests",
        "overload": "refuses: its service is overloaded",
        "auth": "is not logged in",
        "budget": "has spent its budget",
    }
    name = account.provider
    told = f": {account.detail}" if account.detail else ""
    resume = f"forge-actors resume --provider {name}"
    if account.reason in ATTENTION:
        cure = "log in" if account.reason == "auth" else "see to it"
        return f"{name} {words[account.reason]}{told}; {cure}, then {resume}"
    how = "it opens then" if account.stated else "one job tries then"
    return f"{name} {words[account.reason]}{told}; {how}, or try now: {resume}"


def _taken_in(account: Account, now: float) -> Account:
    """As it was saved, by a clock that may have been set back since: it waits no longer
    from now on than it was to wait at first."""
    since = min(account.since, now)
    retry_at = account.retry_at
    if retry_at is not None:
        retry_at = min(retry_at, now + max(0.0, retry_at - account.since))
    return structs.replace(account, since=since, retry_at=retry_at)


def _chance(name: str) -> float:
    """From 0 to 1, by chance, but the same for the same name each time."""
    return zlib.crc32(name.encode()) / 2**32
