"""The work on one issue, as steps: what comes next, and where it stops.

    prepare -> implement -> check -> review -> publish -> ready_for_merge
                   ^          |         |
                   +----------+---------+   findings, a bounded number of times

A phase that nobody has set up is passed over. What a phase came to is its outcome; what
follows from it is decided here, and nowhere else. A worker stops at a settled phase: no
work is ever merged.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct, structs

from forge_actors.domain.epic.records import (
    SETTLED,
    EffectDone,
    EngineState,
    Phase,
    detail,
)
from forge_actors.domain.harmless import clean_lines
from forge_actors.domain.redaction import bounded, redact

#: The phases that programs do, in their order; `publish` is the worker's own.
WorkPhase = Literal["prepare", "implement", "check", "review"]
WORK: tuple[WorkPhase, ...] = get_args(WorkPhase)
#: Those that look at the work, and may send it back.
LOOKING: tuple[WorkPhase, ...] = ("check", "review")
#: Characters of what a check or a review has found.
MAX_FINDINGS = 16 * 1024
#: Times that a check and a review may send the work back, and that a phase may fail.
CHECK_ROUNDS, REVIEW_ROUNDS, FAILURES = 3, 3, 2
#: How many of each may be set.
MAX_ROUNDS = 100

OutcomeKind = Literal["passed", "findings", "failed", "blocked", "done", "later"]
#: The words by which a phase says itself what it came to.
WORDS: tuple[OutcomeKind, ...] = ("passed", "findings", "blocked", "done")


class Outcome(Struct, frozen=True):
    """What one phase came to.

    `findings` is the work to be mended, `failed` that the phase itself came to nothing,
    `blocked` that it takes a person, `done` that there is nothing left to do, and
    `later` that something around it has to be seen to before it can be tried at all.
    """

    kind: OutcomeKind
    #: What was found, or why.
    text: str = ""
    #: The job that it was.
    job: str | None = None


class Plan(Struct, frozen=True):
    """Which phases there are, and how often each may be in vain."""

    phases: frozenset[WorkPhase]
    #: Whether there is anything to publish.
    publishes: bool = False
    check_rounds: int = CHECK_ROUNDS
    review_rounds: int = REVIEW_ROUNDS
    failures: int = FAILURES

    def first(self) -> Phase:
        return self._from(0)

    def follows(self, phase: WorkPhase) -> Phase:
        return self._from(WORK.index(phase) + 1)

    def _from(self, place: int) -> Phase:
        for phase in WORK[place:]:
            if phase in self.phases:
                return phase
        return "publish" if self.publishes else "ready_for_merge"

    def rounds(self, phase: WorkPhase) -> int:
        return self.check_rounds if phase == "check" else self.review_rounds


def moment(now: str, state: EngineState | None) -> str:
    """When the next state is of: never before this one, if the clock is set back."""
    return now if state is None else max(now, state.updated_at)


def is_settled(state: EngineState) -> bool:
    """Whether a worker has nothing more to do here."""
    return state.phase in SETTLED


def after(
    state: EngineState, phase: WorkPhase, outcome: Outcome, plan: Plan, now: str
) -> EngineState:
    """The state once a phase has come to its end."""
    assert state.phase == phase, f"{phase} is not what was to be done"
    jobs = state.jobs if outcome.job is None else {**state.jobs, phase: outcome.job}
    tries = _counted(state.tries, phase)
    state = structs.replace(state, tries=tries, jobs=jobs, updated_at=now)
    match outcome.kind:
        case "passed":
            # What was found has been mended, says the phase that looked last.
            kept = "" if phase in LOOKING else state.findings
            to = plan.follows(phase)
            return structs.replace(state, phase=to, findings=kept, detail="")
        case "done":
            why = detail(outcome.text)
            return structs.replace(state, phase="done", findings="", detail=why)
        case "later":
            return structs.replace(state, detail=detail(f"{phase}: {outcome.text}"))
        case "blocked":
            return _ends(state, "blocked", phase, outcome.text or "it takes a person")
        case "findings" if phase in LOOKING:
            return _sent_back(state, phase, outcome.text, plan)
        case "findings" | "failed":
            return _failed(state, phase, outcome.text or "it failed", plan)


def _sent_back(
    state: EngineState, phase: WorkPhase, text: str, plan: Plan
) -> EngineState:
    """The work is mended, unless that was tried as often as it may be."""
    setbacks = _counted(state.setbacks, phase)
    state = structs.replace(state, setbacks=setbacks)
    found, rounds = findings(phase, text), plan.rounds(phase)
    if setbacks[phase] > rounds:
        why = f"not good after {rounds} rounds of mending: {found}"
        return _ends(state, "failed", phase, why)
    return structs.replace(state, phase="implement", findings=found, detail="")


def _failed(state: EngineState, phase: WorkPhase, why: str, plan: Plan) -> EngineState:
    """It is done again, unless it has failed as often as it may."""
    name = f"{phase} failed"
    setbacks = _counted(state.setbacks, name)
    state = structs.replace(state, setbacks=setbacks)
    if setbacks[name] >= plan.failures:
        return _ends(state, "failed", phase, why)
    return structs.replace(state, detail=detail(f"{phase}: {why}"))


def _ends(state: EngineState, to: Phase, phase: WorkPhase, why: str) -> EngineState:
    return structs.replace(state, phase=to, detail=detail(f"{phase}: {why}"))


def findings(phase: WorkPhase, text: str) -> str:
    """What is handed back to be mended: harmless, and without its beginning if it is
    long, since what a program says last counts most."""
    text = redact(clean_lines(text)).strip()
    if len(text) > MAX_FINDINGS:
        text = f"…{text[1 - MAX_FINDINGS :]}"
    return text or f"The {phase} found something and did not say what."


def published(state: EngineState, now: str) -> EngineState:
    """The state once all is outside that was to be."""
    assert state.phase == "publish", "it is not its turn"
    return structs.replace(state, phase="ready_for_merge", detail="", updated_at=now)


def not_published(state: EngineState, why: str, now: str) -> EngineState:
    """The state once something may not be published, however often it is tried."""
    assert state.phase == "publish", "it is not its turn"
    why = detail(f"publish: {why}")
    return structs.replace(state, phase="blocked", detail=why, updated_at=now)


def effect_of(state: EngineState, effect: str) -> EffectDone | None:
    """What is known of an effect, if it was begun."""
    for known in state.effects:
        if known.effect == effect:
            return known
    return None


def with_effect(state: EngineState, effect: EffectDone, now: str) -> EngineState:
    """The state with what is known of one effect now."""
    others = [known for known in state.effects if known.effect != effect.effect]
    return structs.replace(state, effects=[*others, effect], updated_at=now)


def said_outcome(word: str, text: str) -> Outcome | None:
    """The outcome that a phase named itself; None if that is no word for one."""
    kind = bounded(word.strip().lower(), 20)
    for known in WORDS:
        if kind == known:
            return Outcome(known, text)
    return None


def _counted(counts: dict[str, int], name: str) -> dict[str, int]:
    return {**counts, name: counts.get(name, 0) + 1}
