"""Who is killed, when and in which order: made from the seed, and kept as evidence."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from benchmarks.chaos.processes import (
    END_SECONDS,
    kill,
    marked,
    wait_until_ended,
)

if TYPE_CHECKING:
    import random

    from benchmarks.chaos.processes import Manager

#: `starting`: the service, before it is ready. `both`: service and agent, in either
#: order. `meeting`: the service, and the agent while the next service looks for it.
#: `all`: service, agent and every process of the jobs. Between these kills `stop` ends
#: the service in order, which what runs is not to notice, and `jobs` kills processes of
#: jobs behind the back of both.
Target = Literal[
    "service", "starting", "agent", "both", "meeting", "all", "stop", "jobs"
]
WITH_AGENT = frozenset[Target]({"agent", "both", "meeting", "all"})
#: Seconds from one kill to the next; between two of one blow; until the service is
#: started again; and from the beginning of a start to a kill in it.
PAUSE, GAP, OUTAGE, STARTING = (0.0, 1.2), (0.0, 0.3), (0.0, 0.6), (0.0, 0.6)
EXTRAS = frozenset[Target]({"stop", "jobs"})
#: For so many kills there is one of each of these.
KILLS_AN_EXTRA = 8
#: Most processes of jobs that are killed behind everybody's back.
SOME_JOBS = 2


@dataclass
class Blow:
    """One kill, and what was hit. Moments of the monotonic clock."""

    number: int
    target: Target
    #: Before and after the agent was killed; None if it was not.
    agent: tuple[float, float] | None = None
    jobs: tuple[float, float] | None = None
    #: When the service was killed; None if it was not.
    service: float | None = None
    #: Of the start that followed, or of the service that went on.
    ready: float | None = None
    victims: list[int] = field(default_factory=list)

    @property
    def spans(self) -> list[tuple[float, float]]:
        """When an agent was killed, or jobs: from before to after."""
        return [span for span in (self.agent, self.jobs) if span is not None]

    def __str__(self) -> str:
        moments = [
            f"{name} at {moment:.3f}"
            for name, moment in (
                ("service", self.service),
                ("agent", self.agent and self.agent[0]),
                ("jobs", self.jobs and self.jobs[0]),
                ("ready", self.ready),
            )
            if moment is not None
        ]
        return f"kill {self.number} ({self.target}): {', '.join(moments)}"


def make_targets(rng: random.Random, kills: int, agent_kills: int) -> list[Target]:
    """So many kills in random order, with at least so many of an agent among them.

    There are a few of the extras between them.
    """
    agents: list[Target] = ["agent", "both", "meeting", "all"]
    chosen = [agents[number % 4] for number in range(min(agent_kills, kills))]
    rest: list[Target] = ["service", "service", "starting"]
    chosen += [rest[number % 3] for number in range(kills - len(chosen))]
    chosen += sorted(EXTRAS) * (kills // KILLS_AN_EXTRA)
    rng.shuffle(chosen)
    return chosen


class Killer:
    """Strikes service, agent and jobs, and starts the service again."""

    def __init__(self, manager: Manager, rng: random.Random) -> None:
        self.blows: list[Blow] = []
        self._manager = manager
        self._rng = rng

    def strike(self, target: Target, *, outage: float | None = None) -> Blow:
        """One blow; afterwards the service is ready again.

        With an `outage` all of it falls at once, and nobody is there for so long.
        """
        blow = Blow(len(self.blows) + 1, target)
        self.blows.append(blow)
        agent_first = self._rng.random() < 0.5
        gap = self._rng.uniform(*GAP) if self._rng.random() < 0.5 else 0.0
        if outage is not None:
            # Without a service an agent that runs nothing leaves by itself.
            agent_first, gap = True, 0.0
        if target == "agent":
            self._kill_agent(blow)
            return blow
        if target == "jobs":
            self._kill_some_jobs(blow)
            return blow
        if target in ("starting", "meeting"):
            self._kill_service(blow)
            self._manager.begin()
            time.sleep(self._rng.uniform(*STARTING))
            if target == "meeting":
                self._kill_agent(blow)
                blow.ready = self._manager.ready_or_again()
                return blow
            self._kill_service(blow)
        elif target == "service":
            self._kill_service(blow)
        elif target == "stop":
            self._manager.terminate()
            blow.service = time.monotonic()
        else:
            first, then = self._kill_service, self._kill_agent
            if agent_first:
                first, then = then, first
            first(blow)
            time.sleep(gap)
            then(blow)
            if target == "all":
                self._kill_jobs(blow)
        time.sleep(self._rng.uniform(*OUTAGE) if outage is None else outage)
        blow.ready = self._manager.start_again()
        return blow

    def pause(self) -> None:
        """Let it work for a moment; one time of five, none at all."""
        if self._rng.random() < 0.8:
            time.sleep(self._rng.uniform(*PAUSE))

    def _kill_service(self, blow: Blow) -> None:
        blow.victims.append(self._manager.pid)
        # Before, since reaping a large process takes longer than a short job.
        blow.service = time.monotonic()
        self._manager.kill()

    def _kill_agent(self, blow: Blow) -> None:
        before = time.monotonic()
        agent = self._manager.wait_for_agent()
        if agent is not None:
            blow.victims.append(agent)
            _end(agent)
            blow.agent = (before, time.monotonic())

    def _kill_some_jobs(self, blow: Blow) -> None:
        before = time.monotonic()
        found = marked(self._manager.home)
        blow.victims = self._rng.sample(found, min(len(found), SOME_JOBS))
        for pid in blow.victims:
            kill(pid)
        blow.jobs = (before, time.monotonic())

    def _kill_jobs(self, blow: Blow) -> None:
        before = time.monotonic()
        while victims := marked(self._manager.home):
            blow.victims += victims
            for pid in victims:
                _end(pid)
        blow.jobs = (before, time.monotonic())


def _end(pid: int) -> None:
    kill(pid)
    wait_until_ended(pid, END_SECONDS)
