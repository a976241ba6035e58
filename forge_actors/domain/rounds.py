"""Rounds: what a goal may use, and what its jobs are told of the rounds before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct, structs

from forge_actors.domain.requests import JobRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_ROUNDS = 100
DEFAULT_ROUNDS, DEFAULT_REPEATS, DEFAULT_FAILURES = 8, 2, 3

#: What a step of a goal does.
Role = Literal["act", "check"]
ROLES: tuple[Role, Role] = ("act", "check")
#: What the jobs of a goal have in their environment: the number of the round, and a
#: file with what the last check printed.
OF_A_GOAL = (ROUND, FEEDBACK) = ("FORGE_GOAL_ROUND", "FORGE_GOAL_FEEDBACK")


class Terms(Struct, frozen=True, omit_defaults=True):
    """When a goal is given up. None is no limit."""

    rounds: Annotated[int, Meta(ge=1, le=MAX_ROUNDS)] = DEFAULT_ROUNDS
    #: Seconds of the clock, and what its agents may use in all rounds together.
    seconds: float | None = None
    tokens: int | None = None
    cost: float | None = None
    #: How often the check may fail in the same way over the same files.
    repeats: Annotated[int, Meta(ge=2, le=MAX_ROUNDS)] = DEFAULT_REPEATS
    #: How often in a row the act may fail.
    failures: Annotated[int, Meta(ge=1, le=MAX_ROUNDS)] = DEFAULT_FAILURES


class Marks(Struct, frozen=True, omit_defaults=True):
    """What is kept of a step of a goal besides how it ended."""

    #: Two checks with the same one failed in the same way over the same files. None:
    #: nobody can tell.
    likeness: str | None = None
    #: What the agents of all its jobs have used, as far as they told.
    tokens: int = 0
    cost: float = 0.0
    #: It was given up at a check that found nothing out.
    blind: bool = False
    #: What a goal may use is counted from here.
    anew: bool = False


class Turn(Struct, frozen=True):
    """What the job of a step of a goal goes by."""

    role: Role
    #: The number of its round, and which round of how many this is by its budgets.
    number: int
    round: int
    rounds: int
    #: The jobs that acted before, the newest first.
    before: tuple[str, ...] = ()
    #: The job of the last check, if that failed.
    check: str | None = None
    #: How the last round failed, in words.
    why: str | None = None
    #: The moment at which its time is over, if that runs already, or its seconds.
    until: float | None = None
    seconds: float | None = None
    #: What its agents may still use.
    tokens: int | None = None
    cost: float | None = None


class TurnRequest(JobRequest, kw_only=True):
    """The job of a step of a goal, which goes on with the ones before."""

    turn: Turn


def in_turn(request: JobRequest, turn: Turn) -> TurnRequest:
    fields = {name: getattr(request, name) for name in JobRequest.__struct_fields__}
    return TurnRequest(**fields, turn=turn)


def plain(request: TurnRequest) -> JobRequest:
    """The same as any job."""
    fields = {name: getattr(request, name) for name in JobRequest.__struct_fields__}
    return JobRequest(**fields)


class Round(Struct, frozen=True):
    """How far one round came: whether its act was good, and what its check found."""

    number: int
    acted: bool
    passed: bool = False
    #: How it failed, in words.
    why: str = ""
    likeness: str | None = None
    blind: bool = False
    tokens: int = 0
    cost: float = 0.0


class Decision(Struct, frozen=True):
    """What comes after a round, and why."""

    what: Literal["go on", "done", "stuck", "spent"]
    why: str = ""


GO_ON = Decision("go on")


def decide(terms: Terms, rounds: Sequence[Round], seconds: float) -> Decision:
    """What comes after the last of these rounds, `seconds` after the first began."""
    last = rounds[-1]
    if last.passed:
        return Decision("done", f"the check passed in round {last.number}")
    if terms.seconds is not None and seconds >= terms.seconds:
        return _spent(f"its {span(terms.seconds)} are over", rounds, seconds)
    stuck = _why_stuck(terms, rounds)
    if stuck is not None:
        return Decision("stuck", stuck)
    if len(rounds) >= terms.rounds:
        count = "only round is" if terms.rounds == 1 else f"{terms.rounds} rounds are"
        return _spent(f"its {count} over", rounds, seconds)
    tokens, cost = used(rounds)
    if terms.tokens is not None and tokens >= terms.tokens:
        return _spent(f"its {terms.tokens:,} tokens are used", rounds, seconds)
    if terms.cost is not None and cost >= terms.cost:
        return _spent(f"its ${terms.cost:,.2f} are used", rounds, seconds)
    return GO_ON


def _why_stuck(terms: Terms, rounds: Sequence[Round]) -> str | None:
    last = rounds[-1]
    if last.blind:
        return f"its check in round {last.number} found nothing out: {last.why}"
    if last.likeness is not None:
        same = [each for each in rounds if each.likeness == last.likeness]
        if len(same) >= terms.repeats:
            numbers = ", ".join(str(each.number) for each in same)
            return (
                f"it goes in circles: after rounds {numbers} the files were the same,"
                f" and the check failed in the same way: {last.why}"
            )
    failed = 0
    for each in reversed(rounds):
        if each.acted:
            break
        failed += 1
    if failed >= terms.failures:
        times = "once" if failed == 1 else f"{failed} times in a row"
        return f"its act failed {times}: {last.why}"
    return None


def used(rounds: Sequence[Round]) -> tuple[int, float]:
    """The tokens and the dollars of all of them, as far as they are known."""
    return sum(each.tokens for each in rounds), sum(each.cost for each in rounds)


def _spent(what: str, rounds: Sequence[Round], seconds: float) -> Decision:
    tokens, cost = used(rounds)
    count = "1 round" if len(rounds) == 1 else f"{len(rounds)} rounds"
    parts = [count, span(seconds)]
    parts += [f"{tokens:,} tokens"] if tokens else []
    parts += [f"${cost:,.2f}"] if cost else []
    why = rounds[-1].why
    return Decision("spent", f"{what} ({', '.join(parts)}): {why}")


def span(seconds: float) -> str:
    """A duration for people."""
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{whole} s"


def anew(marks: Marks | None) -> Marks:
    """The same step, begun by somebody who gives the goal its budgets again."""
    return structs.replace(marks or Marks(), anew=True)
