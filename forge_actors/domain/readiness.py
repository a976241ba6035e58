"""Readiness: the stages of a start, what was found by them, and why it is not so.

A service is ready last: after a client has been answered from end to end. What fails
later takes that back at once, and the reasons that were given stay in their order.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, structs

from forge_actors.domain.errors import ForgeError

Stage = Literal[
    "settings",
    "source",
    "ownership",
    "release",
    "database",
    "agent",
    "scheduler",
    "transport",
    "probe",
    "ready",
]
Diagnostic = Literal[
    "database", "scheduler", "releaseCoherence", "endToEnd", "mcpEndToEnd"
]
Verdict = Literal["pass", "fail", "not_observed"]


class Part(Struct, frozen=True):
    """One stage: what it does in words, its failure, and what it observes."""

    doing: str
    code: str
    observes: Diagnostic | None = None


STAGES: dict[Stage, Part] = {
    "settings": Part("reading the settings", "RUNTIME_CONFIG_INVALID"),
    "source": Part("reading its own files", "RUNTIME_SOURCE_SNAPSHOT_FAILED"),
    "ownership": Part("taking the home", "RUNTIME_OWNERSHIP_CONFLICT"),
    "release": Part(
        "checking the active release",
        "RELEASE_COHERENCE_FAILED",
        "releaseCoherence",
    ),
    "database": Part("opening the store", "DATABASE_UNAVAILABLE", "database"),
    "agent": Part("finding the node agent", "NODE_AGENT_UNAVAILABLE"),
    "scheduler": Part(
        "taking up the jobs", "SCHEDULER_INITIALIZATION_FAILED", "scheduler"
    ),
    "transport": Part("opening to clients", "MCP_LISTENER_FAILED"),
    "probe": Part("asking itself as a client", "MCP_END_TO_END_FAILED", "endToEnd"),
    "ready": Part("ready", "RUNTIME_FAILED"),
}
ORDER: tuple[Stage, ...] = tuple(STAGES)
DIAGNOSTICS: tuple[Diagnostic, ...] = (
    "database",
    "scheduler",
    "releaseCoherence",
    "endToEnd",
    "mcpEndToEnd",
)


class ReadinessIncomplete(ForgeError):
    """Something that has to be seen before a service is ready was not."""

    code = "RUNTIME_READINESS_INCOMPLETE"


class Failure(Struct, frozen=True):
    """A part that failed: where, its stable code, and what it said."""

    stage: Stage
    code: str
    message: str


class Readiness(Struct, frozen=True):
    """How far a start has come, and what is known of the parts.

    `required`: what has to pass before it is ready.
    """

    required: tuple[Diagnostic, ...]
    stage: Stage = ORDER[0]
    observed: dict[Diagnostic, Verdict] = {}
    reasons: tuple[str, ...] = ()
    #: Why it ends, once it does.
    ending: str | None = None

    @property
    def diagnostics(self) -> dict[Diagnostic, Verdict]:
        return {name: self.observed.get(name, "not_observed") for name in DIAGNOSTICS}

    @property
    def missing(self) -> tuple[Diagnostic, ...]:
        """What is required and has not passed."""
        return tuple(n for n in self.required if self.observed.get(n) != "pass")

    @property
    def ready(self) -> bool:
        if self.stage != "ready" or self.ending is not None or self.missing:
            return False
        return "fail" not in self.observed.values()

    @property
    def doing(self) -> str:
        """What goes on, in a few words."""
        if self.ending is not None:
            return f"ending: {self.ending}"
        if self.stage == "ready" and not self.ready:
            return f"not ready: {', '.join(self.reasons) or 'something failed'}"
        return STAGES[self.stage].doing

    def enters(self, stage: Stage) -> Readiness:
        """The next stage began, so the one before has passed.

        Raises:
            ReadinessIncomplete: it would be ready without all that is required.
        """
        passed = STAGES[self.stage].observes
        after = self if passed is None else self.observes(passed, "pass")
        if stage == "ready" and after.missing:
            raise ReadinessIncomplete(
                f"{ReadinessIncomplete.code}: {', '.join(after.missing)} did not pass"
            )
        return structs.replace(after, stage=stage)

    def observes(self, name: Diagnostic, verdict: Verdict) -> Readiness:
        return structs.replace(self, observed={**self.observed, name: verdict})

    def fails(self, code: str, name: Diagnostic | None) -> Readiness:
        """Something failed for this reason, and with it what is observed by `name`."""
        reasons = dict.fromkeys((*self.reasons, code))
        after = structs.replace(self, reasons=tuple(reasons))
        return after if name is None else after.observes(name, "fail")


class Answers(Struct, frozen=True):
    """Three questions of their own: one may be no while the others are yes.

    `release_coherent` is None where nobody can tell.
    """

    execution_ready: bool
    maintenance_healthy: bool
    release_coherent: bool | None


def answers(*, ready: bool, clean_up: object, release: Verdict) -> Answers:
    """What is said of a service; `clean_up` is what is wrong with that, if anything.

    A clean-up that fails keeps nothing from being executed.
    """
    coherent = {"pass": True, "fail": False, "not_observed": None}[release]
    return Answers(ready, clean_up is None, coherent)
