"""What a chaos run found, for people and for programs."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.chaos.times import Spread

#: Violations that people are shown; a document has them all.
SHOWN = 40


@dataclass
class Report:
    """The counts, the times and the violations of one run."""

    scenario: str
    seed: int
    seconds: float
    jobs: int
    states: Counter[str] = field(default_factory=Counter)
    #: Ends with an error, by its code.
    codes: Counter[str] = field(default_factory=Counter)
    #: Kills, by what they were aimed at; and how many of them found their agent.
    kills: Counter[str] = field(default_factory=Counter)
    agent_kills: int = 0
    #: What happened between the kills: orderly stops, and jobs that others killed.
    extras: Counter[str] = field(default_factory=Counter)
    killed_processes: int = 0
    begun: int = 0
    #: Runs that never ended by their own account.
    interrupted: int = 0
    repeated: int = 0
    existing: int = 0
    gave_up: list[int] = field(default_factory=list)
    most: dict[str, int] = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    #: Jobs that ended while no service was there.
    ended_alone: int = 0
    #: Of jobs that ended just before a kill, too late for anybody to write it down:
    #: how long before.
    unknown: Spread | None = None
    ready: Spread | None = None
    #: From ready, and from the start of the service, to the right state of what was
    #: interrupted, by target.
    decided: dict[str, tuple[Spread, Spread]] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)

    def document(self) -> dict[str, object]:
        return asdict(self)

    def __str__(self) -> str:
        def counts(some: Counter[str]) -> str:
            return ", ".join(f"{name} {some[name]}" for name in sorted(some)) or "none"

        at_once = ", ".join(
            f"{self.most.get(name, 0)} of {limit} {name}"
            for name, limit in self.limits.items()
        )
        lines = [
            f"chaos: {self.scenario}, seed {self.seed}, {self.seconds:.0f} s",
            f"jobs: {self.jobs}; {counts(self.states)}",
            f"errors: {counts(self.codes)}",
            f"runs: {self.begun} began by the jobs' own account",
            f"  that never ended: {self.interrupted}",
            f"  that ended while there was no service: {self.ended_alone}",
            f"  that ended just before a kill, unseen: {self.unknown}",
            f"kills: {sum(self.kills.values())} ({counts(self.kills)})",
            f"  that met an agent: {self.agent_kills}",
            f"  processes killed: {self.killed_processes}",
            f"  between them: {counts(self.extras)}",
            f"submissions sent again: {self.repeated}",
            f"  jobs that were there already: {self.existing}",
            f"at once, at most: {at_once}",
            f"ready after a restart: {self.ready or 'none'}",
        ]
        lines += [
            f"right state after a kill of {target}: {ready}; since the start: {start}"
            for target, (ready, start) in self.decided.items()
        ]
        if self.gave_up:
            lines.append(f"services that ended by themselves: {self.gave_up}")
        if not self.violations:
            return "\n".join([*lines, "nothing lost, nothing twice"])
        lines.append(f"WRONG: {len(self.violations)}")
        lines += [f"  {text}" for text in self.violations[:SHOWN]]
        if len(self.violations) > SHOWN:
            lines.append("  … --json shows all of them")
        return "\n".join(lines)
