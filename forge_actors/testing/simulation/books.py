"""The books of the referee: what it knows of each job, and what it says is wrong."""

from __future__ import annotations

from msgspec import Struct

from forge_actors.domain.claims import Claim
from forge_actors.domain.jobs import RESERVED, TERMINAL, Replay, State
from forge_actors.domain.policies import Policy
from forge_actors.domain.scopes import Pause
from forge_actors.domain.verifying import Step

#: Waiting this long raises a job by one step, as design/semantics.md says.
AGEING_SECONDS = 1800.0
#: Seconds that news may take from the store to a repository's actor.
NEWS_SECONDS = 1.0


class Violation(Exception):
    """Something that must hold does not. `rule` names it."""

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(rule, what)
        self.rule = rule
        self.what = what

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


class Case(Struct):
    """What the referee knows of one job."""

    job: str
    repo: str
    state: State
    priority: int
    replay: Replay
    max_attempts: int
    claims: tuple[Claim, ...]
    tokens: tuple[str, ...]
    after: tuple[str, ...]
    queued_at: float
    #: On trio's clock: since when its repository's actor surely knows of it.
    known_at: float
    #: It may be given a worktree in place of its checkout.
    isolatable: bool = False
    #: The work that it is of.
    work: str | None = None
    held: bool = False
    #: It is dispatched, and has no tokens yet; and the limits of that time, under which
    #: it may have had them.
    ahead: bool = False
    limits: dict[str, int] = {}
    attempt: int = 0
    fence: int | None = None
    #: How many of its attempts began.
    begun: int = 0
    #: How many of them a provider refused, or asked something, and how many of those
    #: before the step that it is at.
    refused: int = 0
    refused_before: int = 0
    #: Somebody asked for its end.
    cancelled: bool = False
    #: The epoch of the runtime that answered that it stops this attempt.
    stopped_by: tuple[int, int] | None = None
    #: If its work is checked: the step it is at, how many rounds of mending were begun,
    #: of how many, and how many attempts it had had when the step began.
    step: Step | None = None
    round: int = 0
    rounds: int = 0
    entered: int = 0
    #: How its last check failed, if two that did so are known to be alike.
    alike: bool = False
    #: What its agent takes.
    agent_tokens: tuple[str, ...] = ()

    @property
    def keeps(self) -> bool:
        """What it claims is kept from others: it runs, or its work is to be checked."""
        return self.reserved or (self.waiting and self.step == "check")

    @property
    def reserved(self) -> bool:
        return self.state in RESERVED

    @property
    def waiting(self) -> bool:
        return self.state not in RESERVED and self.state not in TERMINAL

    def rank(self, at: float) -> tuple[int, float, str]:
        """Its place among the jobs of its repository; the least comes first."""
        raised = int(max(0.0, at - self.queued_at) // AGEING_SECONDS)
        return max(0, self.priority - raised), self.queued_at, self.job


class Books:
    """All that is known at one moment."""

    def __init__(self) -> None:
        self.cases: dict[str, Case] = {}
        self.pauses: dict[str, Pause] = {}
        self.policy = Policy()
        self.removed: set[str] = set()
        #: Those whose actors failed at reading. What ended then gave its tokens back,
        #: though its end is only saved by the next actor.
        self.failed: set[str] = set()
        #: The last fence of each repository.
        self.fences: dict[str, int] = {}
        #: Claims of trees that are not proven gone, by job, for each repository.
        self.quarantined: dict[str, dict[str, tuple[Claim, ...]]] = {}

    @property
    def open_cases(self) -> list[Case]:
        """The jobs that have not ended."""
        return [case for case in self.cases.values() if case.state not in TERMINAL]

    @property
    def keeps_claims(self) -> bool:
        """Whether claims are kept for what is not proven gone."""
        return any(self.quarantined.values())

    def others(self, case: Case) -> list[Case]:
        """The other jobs of its repository that have not ended."""
        return [
            other
            for other in self.open_cases
            if other.repo == case.repo and other is not case
        ]

    def met(self, case: Case) -> bool:
        """Whether all that it runs after has succeeded."""
        return all(self.cases[name].state == "succeeded" for name in case.after)
