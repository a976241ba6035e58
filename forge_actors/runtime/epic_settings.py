"""The section `[epic]`: how the issues of an EPIC are worked through.

The scheduler goes by the pace and the limits, a worker by the rest: what of it decides
about the work has a digest, so that work goes on only with the settings it began with.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct, structs, to_builtins

from forge_actors.domain.branches import base_problem, branch_problem
from forge_actors.domain.deadlines import parse_budget, parse_duration
from forge_actors.domain.epic.phases import (
    CHECK_ROUNDS,
    FAILURES,
    MAX_ROUNDS,
    REVIEW_ROUNDS,
    WORK,
    Plan,
    WorkPhase,
)
from forge_actors.domain.epic.records import digest_of
from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    from forge_actors.domain.settings import Value

#: Workers of one EPIC at once; there is no "as many as there are".
LEAST_PARALLEL, MOST_PARALLEL, PARALLEL = 1, 16, 3
#: Seconds.
LEAST_POLL, MOST = 1.0, 86_400.0
BRANCH = "forge/epic-{epic}/issue-{issue}"
#: What the scheduler alone goes by.
_PACE = ("max_parallel", "poll_interval", "stop_grace", "satisfied_by")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
#: Seconds that a phase without an agent may take, where nobody says otherwise.
ARGV_TIMEOUT = "1h"
MAX_ARGV = 256

Rounds = Annotated[int, Meta(ge=0, le=MAX_ROUNDS)]
Effect = Literal["push", "pull_request"]


class PhaseSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What is run for a phase: a command, or an agent with more arguments for it."""

    agent: str | None = None
    argv: tuple[str, ...] = ()
    #: By default 12 h for an agent and 1 h for a command.
    timeout: str | float | None = None

    @property
    def is_set(self) -> bool:
        return self.agent is not None or bool(self.argv)

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that may do it: the first of them that can does."""
        names = (self.agent or "").split(",")
        return tuple(filter(None, (name.strip() for name in names)))

    def check(self, place: str, *, agents: bool) -> None:
        """
        Raises:
            InvalidInput: naming the field.
        """
        if self.agent is not None and not agents:
            raise InvalidInput(f"{place}.agent", "this phase runs a command: give argv")
        if self.agent is not None and not self.agents:
            raise InvalidInput(f"{place}.agent", "is empty")
        if len(self.argv) > MAX_ARGV:
            raise InvalidInput(f"{place}.argv", f"has more than {MAX_ARGV} arguments")
        if self.argv and (not self.argv[0] or any("\0" in word for word in self.argv)):
            raise InvalidInput(f"{place}.argv", "names no program to run")
        if self.timeout is not None:
            parse_budget(self.timeout, field=f"{place}.timeout")


class PhaseTables(Struct, frozen=True, forbid_unknown_fields=True):
    """One table a phase; one that is not there is passed over."""

    prepare: PhaseSettings = PhaseSettings()
    implement: PhaseSettings = PhaseSettings()
    check: PhaseSettings = PhaseSettings()
    review: PhaseSettings = PhaseSettings()

    def of(self, phase: WorkPhase) -> PhaseSettings:
        found: PhaseSettings = getattr(self, phase)
        return found


class EpicSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """EPIC mode."""

    #: Issues that are worked on at once.
    max_parallel: Annotated[int, Meta(ge=LEAST_PARALLEL, le=MOST_PARALLEL)] = PARALLEL
    #: From the end of one look at the graph to the next.
    poll_interval: str | float = "60s"
    #: That workers have to end once they were asked to.
    stop_grace: str | float = "30s"
    #: How an issue may be closed so that nothing waits for it, besides `completed`.
    satisfied_by: tuple[
        Literal["completed", "not-planned", "duplicate", "any"], ...
    ] = ()
    #: What is done with good work outside of this machine.
    effects: tuple[Effect, ...] = ()
    #: Where it is pushed to.
    remote: str = "origin"
    #: The name of the branch of an issue.
    branch: str = BRANCH
    #: What it begins at and is to be merged into; else what the checkout has, and the
    #: default branch of the repository.
    base: str | None = None
    #: Times that a check and a review may send the work back.
    check_rounds: Rounds = CHECK_ROUNDS
    review_rounds: Rounds = REVIEW_ROUNDS
    #: Times that a phase may fail until the issue has.
    failures: Annotated[int, Meta(ge=1, le=MAX_ROUNDS)] = FAILURES
    phases: PhaseTables = PhaseTables()

    @property
    def poll_seconds(self) -> float:
        return _within(self.poll_interval, LEAST_POLL, MOST, field="epic.poll_interval")

    @property
    def grace_seconds(self) -> float:
        return _within(self.stop_grace, 0.0, MOST, field="epic.stop_grace")

    def check(self) -> None:
        """Check what the types do not tell.

        Raises:
            InvalidInput: naming the field.
        """
        _ = self.poll_seconds, self.grace_seconds
        if "pull_request" in self.effects and "push" not in self.effects:
            raise InvalidInput("epic.effects", "a pull_request needs a push before it")
        for name in _PLACEHOLDER.findall(self.branch):
            if name not in ("epic", "issue"):
                allowed = ("{epic}", "{issue}")
                unknown = f"{{{name}}} stands for nothing"
                raise InvalidInput("epic.branch", unknown, allowed=allowed)
        if "{issue}" not in self.branch:
            raise InvalidInput("epic.branch", "needs {issue}: every issue has its own")
        problem: str | None = branch_problem(self.branch_of(1, 2))
        if problem is not None:
            named = f"{self.branch!r} makes no name of a branch: {problem}"
            raise InvalidInput("epic.branch", named)
        problem = None if self.base is None else base_problem(self.base)
        if problem is not None:
            raise InvalidInput("epic.base", f"{self.base!r} names no commit: {problem}")
        if branch_problem(self.remote):
            raise InvalidInput("epic.remote", f"{self.remote!r} names no remote")
        for phase in WORK:
            agents = phase in ("implement", "review")
            self.phases.of(phase).check(f"epic.phases.{phase}", agents=agents)

    def check_ready(self) -> None:
        """Check that there is something that does the work.

        Raises:
            InvalidInput: nothing does.
        """
        if not self.phases.implement.is_set:
            raise InvalidInput(
                "epic.phases.implement",
                "nothing is set up that does the work: give --agent NAME, or an agent"
                " or argv in the settings",
            )

    def branch_of(self, epic: int | str, issue: int) -> str:
        """The name of the branch of an issue; `epic` is a number, or a plan."""
        names = {"epic": str(epic), "issue": str(issue)}
        return _PLACEHOLDER.sub(lambda found: names.get(found[1], ""), self.branch)

    def plan(self) -> Plan:
        """The phases as the domain knows them."""
        return Plan(
            phases=frozenset(each for each in WORK if self.phases.of(each).is_set),
            publishes=bool(self.effects),
            check_rounds=self.check_rounds,
            review_rounds=self.review_rounds,
            failures=self.failures,
        )

    def digest(self) -> str:
        """Of what decides about the work: not of the pace of the scheduler."""
        table = to_builtins(self)
        told = {name: value for name, value in table.items() if name not in _PACE}
        text = json.dumps(told, sort_keys=True, separators=(",", ":"))
        return digest_of(text.encode())

    def values(self) -> dict[str, Value]:
        """Every setting by its full name."""
        values: dict[str, Value] = {}
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if name != "phases":
                values[f"epic.{name}"] = list(value) if name in _LISTS else value
        for phase in WORK:
            table, place = self.phases.of(phase), f"epic.phases.{phase}"
            values[f"{place}.agent"] = table.agent
            values[f"{place}.argv"] = list(table.argv)
            values[f"{place}.timeout"] = table.timeout
        return values


_LISTS = ("satisfied_by", "effects")


def with_agent(settings: EpicSettings, agent: str | None) -> EpicSettings:
    """The settings with this agent for the phases that take one; None changes nothing.

    Raises:
        InvalidInput: that names none.
    """
    if agent is None:
        return settings
    tables = settings.phases
    made = PhaseSettings(agent)
    tables = structs.replace(
        tables,
        implement=structs.replace(made, timeout=tables.implement.timeout),
        review=structs.replace(made, timeout=tables.review.timeout),
    )
    settings = structs.replace(settings, phases=tables)
    settings.check()
    return settings


def parallel(wanted: object, settings: EpicSettings) -> int:
    """How many issues are worked on at once: what somebody wanted, or the setting.

    Raises:
        InvalidInput: naming both bounds.
    """
    if wanted is None:
        return settings.max_parallel
    # True is an int, and no number of workers.
    good = type(wanted) is int and LEAST_PARALLEL <= wanted <= MOST_PARALLEL
    if not good:
        problem = f"{str(wanted)[:40]!r} is no whole number of workers"
        allowed = (f"{LEAST_PARALLEL} to {MOST_PARALLEL}",)
        raise InvalidInput("max_parallel", problem, allowed=allowed)
    assert isinstance(wanted, int)
    return wanted


def _within(value: str | float, least: float, most: float, *, field: str) -> float:
    seconds = parse_duration(value, field=field)
    if not least <= seconds <= most:
        raise InvalidInput(field, f"must be from {least:g} s to {most:g} s")
    return seconds
