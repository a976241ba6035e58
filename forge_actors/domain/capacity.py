"""Capacity: which tokens a job needs, how many there are, and who is next in line.

A token is the right to run one child of some kind. The kinds are `workers`,
`heavy_checks`, `agents` and one `provider:NAME` for each provider. A job gets all of
its tokens or none. The number of repositories that run something is limited too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from forge_actors.domain.backoff import Backoff
from forge_actors.domain.jobs import AGENT_KINDS, HEAVY_KINDS
from forge_actors.domain.priority import Rank, effective

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from forge_actors.domain.day_budgets import DayBudgets
    from forge_actors.domain.jobs import AgentChoice, Job, Kind
    from forge_actors.domain.open_files import OpenFiles
    from forge_actors.domain.verifying import Verify

WORKERS = "workers"
HEAVY_CHECKS = "heavy_checks"
AGENTS = "agents"
ACTIVE_REPOSITORIES = "active_repositories"


def provider_token(provider: str) -> str:
    return f"provider:{provider}"


def tokens_for(kind: Kind, provider: str | None) -> tuple[str, ...]:
    """The tokens a job of this kind needs, in a fixed order."""
    tokens = [WORKERS]
    if kind in HEAVY_KINDS:
        tokens.append(HEAVY_CHECKS)
    if kind in AGENT_KINDS or provider is not None:
        tokens.append(AGENTS)
    if provider is not None:
        tokens.append(provider_token(provider))
    return tuple(tokens)


#: Those of the check of an agent's work, which needs no agent.
CHECK_TOKENS = tokens_for("check", None)


def go_to_step(job: Job, step: Verify) -> None:
    """Its check is next, with tokens of its own, or its agent, with those it had."""
    before = job.verify
    assert before is not None, "its work is checked"
    job.tokens = CHECK_TOKENS if step.checking else before.tokens
    job.verify, job.isolatable = step, False


def direct(job: Job, choice: AgentChoice) -> None:
    """Let this agent do the job: it needs the tokens of that one."""
    job.agent, job.tokens = choice.name, tokens_for(job.kind, choice.provider)


class Limits(Struct, frozen=True):
    """How many of each token there are, and what holds under pressure."""

    tokens: dict[str, int]
    active_repositories: int
    pressure_workers: int = 1
    overtake_after: float = 30 * 60.0
    #: Why there are fewer workers than were set, if there are.
    fewer_workers: str | None = None
    #: Seconds from one start to the next where jobs return to a provider.
    return_gap: float = 1.0
    #: What agents may use in a day.
    budgets: DayBudgets | None = None
    #: Jobs that may wait at the launcher for the end of one that is short.
    ahead: int = 0


def fitting(limits: Limits, files: OpenFiles) -> Limits:
    """The limits, with no more workers than there can be files for."""
    wanted = limits.tokens[WORKERS]
    if files.workers is None or wanted <= files.workers:
        return limits
    return structs.replace(
        limits,
        tokens={**limits.tokens, WORKERS: files.workers},
        fewer_workers=f"{wanted} are set, but {files}",
    )


class RepositoryLimits(Struct, frozen=True):
    """What one repository's ledger goes by."""

    workers: int
    overtake_after: float
    #: The kinds of token that there are; None for any.
    known: frozenset[str] | None = None
    backoff: Backoff = Backoff()
    #: Agent jobs get a worktree where only the checkout of others is in their way.
    isolates: bool = False


class Offer(Struct, frozen=True):
    """The best startable job of one repository that needs exactly these tokens."""

    repo: str
    job: str
    tokens: tuple[str, ...]
    priority: int
    queued_at: float

    def order(self, last_dispatch: float, now: float) -> tuple[int, float, Rank, str]:
        """Effective priority, then the repository served longest ago, then the rank."""
        aged = effective(self.priority, self.queued_at, now)
        return aged, last_dispatch, (aged, self.queued_at, self.job), self.repo


def offer_of(job: Job) -> Offer:
    return Offer(job.repo, job.id, job.tokens, job.priority, job.queued_at)


class Lack(Struct, frozen=True):
    """One reason why an offer cannot be granted now."""

    token: str
    used: int
    limit: int
    holders: tuple[str, ...]


class TokenUse(Struct, frozen=True):
    """How many tokens of one kind are in use, by which jobs, of how many."""

    used: int
    limit: int
    jobs: tuple[str, ...]
    #: The settings name it; if not, it is only held by what still runs.
    known: bool = True


class Capacity:
    """The counts of tokens in use. Only the supervisor's task holds one.

    Invariant: `len(self.holders(kind)) <= limits.tokens[kind]`, unless a reload made
    the limit smaller than what was in use.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.pressure: str | None = None
        #: The kinds of which nothing is granted: their providers are paused.
        self.closed: frozenset[str] = frozenset()
        #: The kinds of which nothing is granted now: the accounts of their providers
        #: are closed, or a job has just returned to one.
        self.barred: frozenset[str] = frozenset()
        #: The kinds to which jobs return one by one.
        self.returning: frozenset[str] = frozenset()
        self._held: dict[str, dict[str, None]] = {kind: {} for kind in limits.tokens}
        self._repos: dict[str, dict[str, None]] = {}

    def set_limits(self, limits: Limits) -> None:
        """Count by other limits from now on; what is held stays held."""
        self.limits = limits
        for kind in limits.tokens:
            self._held.setdefault(kind, {})

    def kinds(self) -> list[str]:
        """Every kind with a limit, and those that are still held without one."""
        gone = [k for k, held in self._held.items() if held and not self.known(k)]
        return [*self.limits.tokens, *gone]

    def known(self, kind: str) -> bool:
        """Whether the settings name this kind."""
        return kind in self.limits.tokens

    def use(
        self, kind: str, jobs_of: Callable[[tuple[str, ...]], tuple[str, ...]]
    ) -> TokenUse:
        """How much of a kind is in use; `jobs_of` turns holders into jobs."""
        limit = self.limits.tokens.get(kind, 0)
        jobs = jobs_of(self.holders(kind))
        return TokenUse(self.used(kind), limit, jobs, self.known(kind))

    def used(self, kind: str) -> int:
        return len(self._held.get(kind, ()))

    def holders(self, kind: str) -> tuple[str, ...]:
        return tuple(self._held.get(kind, ()))

    def limit(self, kind: str) -> int:
        """The limit as it holds now: pressure lowers it, a pause closes it.

        A kind that the settings no longer name has none left.
        """
        limit = self.limits.tokens.get(kind, 0)
        if kind in self.closed or kind in self.barred:
            return 0
        if self.pressure is None:
            return limit
        if kind == WORKERS:
            return min(limit, self.limits.pressure_workers)
        return limit if kind == HEAVY_CHECKS else 0

    @property
    def active_repositories(self) -> Collection[str]:
        """The repositories that hold tokens."""
        return self._repos.keys()

    @property
    def repositories_full(self) -> bool:
        """Only a repository that is active already can be granted something."""
        return len(self._repos) >= self.limits.active_repositories

    def lacking(self, repo: str, tokens: Iterable[str]) -> tuple[Lack, ...]:
        """What a job of `repo` would have to wait for; empty if it can start."""
        lacks = [
            Lack(kind, self.used(kind), self.limit(kind), self.holders(kind))
            for kind in tokens
            if self.used(kind) >= self.limit(kind)
        ]
        repos, limit = self._repos, self.limits.active_repositories
        if self._is_barred(repo):
            jobs = tuple(job for held in repos.values() for job in held)
            lacks.append(Lack(ACTIVE_REPOSITORIES, len(repos), limit, jobs))
        return tuple(lacks)

    def may_be_active(self, repo: str) -> bool:
        """Whether the number of repositories lets this one start something."""
        return not self._is_barred(repo)

    def fits(self, repo: str, tokens: Iterable[str]) -> bool:
        """`not self.lacking(repo, tokens)`, without building the reasons."""
        return not self._is_barred(repo) and all(
            self.used(kind) < self.limit(kind) for kind in tokens
        )

    def _is_barred(self, repo: str) -> bool:
        """Too many repositories are active for this one to start something.

        With more than the limit, which was lowered, none may: each of them would go on
        with its own jobs, and their number never fall.
        """
        active, limit = len(self._repos), self.limits.active_repositories
        return active >= limit and (active > limit or repo not in self._repos)

    def take(self, holder: str, repo: str, tokens: Iterable[str]) -> None:
        """Count the tokens as held by `holder`, the id of a grant."""
        for kind in tokens:
            # The settings may not name it any more: what runs already holds it still.
            held = self._held.setdefault(kind, {})
            assert holder not in held, "a grant holds a token once"
            held[holder] = None
        self._repos.setdefault(repo, {})[holder] = None

    def give_back(self, holder: str, repo: str, tokens: Iterable[str]) -> None:
        for kind in tokens:
            del self._held[kind][holder]
        jobs = self._repos[repo]
        del jobs[holder]
        if not jobs:
            del self._repos[repo]
