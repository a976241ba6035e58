"""Plans: all that people do and all that goes wrong in one run, drawn from its seed.

A plan is data. A part of it can be left out, to find what a failure needs.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from forge_actors.domain.requests import JobEdit, JobRequest
from forge_actors.runtime.limit_settings import LimitSettings
from forge_actors.runtime.settings import (
    ProviderSettings,
    RetrySettings,
    SchedulingSettings,
    Settings,
)
from forge_actors.testing.simulation.coverage import FAULTS, RARE
from forge_actors.testing.simulation.faults import Fault
from forge_actors.testing.simulation.held_back import hold_back
from forge_actors.testing.simulation.machine import Run
from forge_actors.testing.simulation.outages import ASKING, Outage, draw_outages
from forge_actors.testing.simulation.policies import give_works, moments
from forge_actors.testing.simulation.short import shorten
from forge_actors.testing.simulation.verified import give_agents

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

    from forge_actors.testing.simulation.faults import Kind, When

#: Seconds within which everything is begun.
HORIZON = 12.0
KINDS = (
    *["repository-command"] * 4,
    *["check"] * 3,
    "verify-edit",
    "agent-run",
    "dispatch-task",
    "integration",
)
CLAIMS = (
    "read:path:src",
    "read:path:src/a",
    "write:path:src/a",
    "write:path:src/b",
    "write:path:docs",
    "write:workspace",
    "write:workspace",
    "read:repo-content:*",
    "write:build-cache:one",
    "write:integration",
    "exclusive:repo-content:*",
    "write:git-ref:main",
    "write:release",
    "write:heavy-check",
    "write:heavy-check",
)
#: How many of the attempts cannot be found when their agent is gone.
HIDING = 0.25
#: Where a crash leaves most to be found out: drawn more often.
CORE = ("JobAdded", "JobDispatched", "JobRequeued", "JobEnded")
WEIGHTED = (
    *FAULTS,
    *(f for f in FAULTS for r in RARE if f[1].split()[-1] == r),
    *[f for f in FAULTS if f[0] == "service" and f[1].split()[-1] in CORE] * 5,
)
SCARCE = ("write:integration", "write:heavy-check", "write:release")
#: The last words of points that nearly every run passes many times.
OFTEN = (
    "JobAdded",
    "JobDispatched",
    "JobRan",
    "JobEnded",
    "Noted",
    "start",
    "started",
    "exited",
    "forget",
    "starting",
    "process",
    "receipt",
    "spec",
)
PROVIDERS = ("codex", "claude")
MORE_CANCELS = 2


class Operation(Struct, frozen=True):
    """Something that somebody does, at a moment of the run."""

    at: float
    verb: str
    #: The name of a job or of a repository, or a scope.
    target: str = ""
    value: object = None

    def __str__(self) -> str:
        value = "" if self.value is None else f" {self.value}"
        return f"{self.at:.3f} s: {self.verb} {self.target}{value}"


class Plan(Struct, frozen=True):
    """One run."""

    seed: int
    #: The agent ends with the service, as that of an embedding program.
    bound: bool
    settings: Settings
    repositories: tuple[str, ...]
    #: What the jobs are, and what their attempts do, by name.
    jobs: dict[str, JobRequest]
    runs: dict[str, tuple[Run, ...]]
    operations: tuple[Operation, ...]
    faults: tuple[Fault, ...]
    outages: tuple[Outage, ...] = ()
    #: Seconds within which everything is begun, after them until all must have ended,
    #: and until a person sees to what needs one.
    horizon: float = HORIZON
    patience: float = 1200.0
    person: float = 3.0
    #: No two agents may ever be in one folder: none of them only reads.
    apart: bool = False

    def without(
        self, operations: Iterable[Operation] = (), faults: Iterable[Fault] = ()
    ) -> Plan:
        """The same without some of what is done and of what goes wrong."""
        less, fewer = set(map(id, operations)), set(map(id, faults))
        return structs.replace(
            self,
            operations=tuple(o for o in self.operations if id(o) not in less),
            faults=tuple(f for f in self.faults if id(f) not in fewer),
        )


def draw(seed: int) -> Plan:
    """The plan of a seed: the same one, always and everywhere."""
    chance = random.Random(f"plan {seed}")  # noqa: S311 - chance, no secret
    repositories = tuple(f"r{n}" for n in range(chance.randint(3, 4)))
    names = [f"j{n}" for n in range(chance.randint(20, 24))]
    jobs: dict[str, JobRequest] = {}
    for name in names:
        jobs[name] = _job(chance, name, repositories, list(jobs))
    outages = draw_outages(seed, PROVIDERS, HORIZON)
    if outages:
        asking = random.Random(f"asking {seed}")  # noqa: S311 - chance, no secret
        for request in jobs.values():
            if asking.random() < ASKING:
                request.provider = asking.choice(PROVIDERS)
    runs = {name: tuple(_run(chance) for _ in range(4)) for name in names}
    give_agents(seed, jobs, runs)
    hold_back(seed, jobs)
    operations = [
        *_submissions(chance, names),
        *_operations(chance, names, repositories),
        *_cancels(seed, names),
    ]
    bound, settings, faults = chance.random() < 0.15, _settings(chance), _faults(chance)
    # To be left behind by an agent that dies, a job has to run for long enough.
    if not any(fault.point.split()[-1] == "Quarantined" for fault in faults):
        settings = shorten(seed, settings, jobs, runs, operations)
    if give_works(seed, jobs.values()):
        for at, wanted in moments(seed, HORIZON):
            operations.append(Operation(at, "policy", "", wanted))
    operations.sort(key=lambda operation: operation.at)
    return Plan(
        seed,
        bound,
        settings,
        repositories,
        jobs,
        runs,
        tuple(operations),
        faults,
        outages,
    )


def _settings(chance: Random) -> Settings:
    return Settings(
        limits=LimitSettings(
            workers=chance.randint(1, 4),
            active_repositories=chance.randint(1, 3),
            heavy_checks=chance.randint(1, 2),
            agents=chance.randint(1, 2),
            repository_workers=chance.choice((None, 1, 2, 3)),
        ),
        retries=RetrySettings(chance.choice(("0s", "1s", "1s"))),
        scheduling=SchedulingSettings(chance.choice((5.0, 30.0, 1800.0, 1800.0))),
        providers={name: ProviderSettings(chance.randint(1, 2)) for name in PROVIDERS},
    )


def _job(
    chance: Random, name: str, repositories: tuple[str, ...], earlier: list[str]
) -> JobRequest:
    request = JobRequest(
        repo=chance.choice(repositories),
        argv=["run", name],
        kind=chance.choice(KINDS),
        priority=f"P{chance.randint(0, 4)}",
        name=name,
        request_id=name,
        grace=chance.choice((0.0, 0.5, 2.0)),
    )
    if chance.random() < 0.3:
        # What waits for one of them may wait for another one next.
        request.claims = chance.sample(SCARCE, chance.randint(2, 3))
    elif chance.random() < 0.5:
        request.claims = chance.sample(CLAIMS, chance.randint(1, 2))
    elif chance.random() < 0.4:
        request.read_only = True
    if earlier and chance.random() < 0.2:
        request.after = [chance.choice(earlier[-6:])]
    if chance.random() < 0.2:
        request.provider = chance.choice(PROVIDERS)
    request.replay = chance.choice((None, None, "never", "safe", "always"))
    if chance.random() < 0.3:
        request.max_attempts = chance.randint(1, 4)
    if chance.random() < 0.15:
        request.isolate = chance.random() < 0.7
    for budget in ("timeout", "idle_timeout", "queue_timeout", "admission_timeout"):
        if chance.random() < 0.06:
            setattr(request, budget, chance.choice((1.0, 2.0, 5.0)))
    return request


def _run(chance: Random) -> Run:
    return Run(
        seconds=chance.choice((0.02, 0.05, 0.1, 0.3, 1.0, 2.5, 7.0)),
        exit_code=chance.choice((0, 0, 0, 0, 3)),
        signal="SIGSEGV" if chance.random() < 0.08 else None,
        obeys=chance.choice((0.0, 0.01, 0.2, 5.0)),
        missing=chance.random() < 0.03,
        crowded=chance.random() < 0.05,
        hides=chance.random() < HIDING,
    )


def _submissions(chance: Random, names: list[str]) -> list[Operation]:
    """All jobs, in batches; a later one never comes before what it runs after."""
    made = []
    at, rest = 0.0, list(names)
    while rest:
        count = chance.choice((1, 1, 2, 3, 5))
        batch, rest = rest[:count], rest[count:]
        made.append(Operation(at, "submit", " ".join(batch)))
        at += chance.random() * HORIZON / 12
    return made


def _cancels(seed: int, names: list[str]) -> Iterable[Operation]:
    """More cancels than others draw: few of them meet a job that runs."""
    chance = random.Random(f"cancels {seed}")  # noqa: S311 - chance, no secret
    for _ in range(MORE_CANCELS):
        yield Operation(chance.random() * HORIZON, "cancel", chance.choice(names))


def _operations(
    chance: Random, names: list[str], repositories: tuple[str, ...]
) -> list[Operation]:
    made = []
    for _ in range(chance.randint(8, 14)):
        operation = _operation(chance, names, repositories)
        made.append(operation)
        if operation.verb == "pause" and chance.random() < 0.6:
            at = operation.at + chance.random() * 3.0
            made.append(Operation(at, "resume", operation.target, operation.value))
    return made


def _operation(
    chance: Random, names: list[str], repositories: tuple[str, ...]
) -> Operation:
    at = chance.random() * HORIZON
    verb = chance.choice(_VERBS)
    value: object = None
    match verb:
        case "cancel" | "hold" | "unhold" | "suspend" | "continue" | "retry" | "edit":
            target = chance.choice(names)
            if verb == "edit":
                value = _edit(chance)
        case "pause" | "resume":
            # Few, so that what begins is often ended too.
            scopes = ["all", f"repo:{repositories[0]}", f"provider:{PROVIDERS[0]}"]
            target, value = chance.choice(scopes), chance.random() < 0.5
        case "disable" | "enable" | "remove" | "vanish" | "move":
            target = chance.choice(repositories)
        case "submit":
            target = chance.choice(names)
        case "limits":
            target, value = "", _settings(chance)
        case "clock":
            target = ""
            value = chance.choice((-86400.0, -3600.0, -5.0, 5.0, 1900.0, 86400.0))
        case "suspend machine":
            target, value = "", chance.choice((5.0, 40.0, 1900.0, 4000.0, 86400.0))
        case "pressure":
            target, value = "", chance.random() < 0.6
        case "restart":
            target, value = (
                "",
                chance.choice(("detached", "detached", "shutdown", "cancelled")),
            )
        case _:
            target = ""
    return Operation(at, verb, target, value)


_VERBS = (
    *["cancel"] * 4,
    *["hold", "unhold"] * 2,
    *["suspend", "continue"] * 2,
    *["edit"] * 3,
    *["retry"] * 3,
    *["pause"] * 3,
    *["resume"] * 2,
    *["disable", "enable"],
    *["remove"] * 5,
    *["vanish"] * 3,
    *["move"] * 3,
    "submit",
    *["limits"] * 3,
    *["clock"] * 3,
    *["suspend machine"] * 4,
    *["pressure"] * 3,
    *["restart"] * 2,
    *["take over"] * 4,
    *["drain"],
    *["hand on"] * 4,
    *["look"] * 2,
)


def _edit(chance: Random) -> JobEdit:
    match chance.randrange(3):
        case 0:
            return JobEdit(priority=f"P{chance.randint(0, 4)}")
        case 1:
            return JobEdit(claims=[chance.choice(CLAIMS)])
        case _:
            return JobEdit(queue_timeout=chance.choice((2.0, 10.0, "none")))


def _faults(chance: Random) -> tuple[Fault, ...]:
    """Three of different kinds, and a few more."""
    kinds = dict.fromkeys(kind for kind, _, _ in FAULTS)
    first = chance.sample(list(kinds), 3)
    places = [chance.choice([p for p in FAULTS if p[0] == kind]) for kind in first]
    places += [chance.choice(WEIGHTED) for _ in range(chance.randint(1, 8))]
    return tuple(_fault(chance, *place) for place in places)


def _fault(chance: Random, kind: Kind, point: str, when: When) -> Fault:
    often = any(point.endswith(word) for word in OFTEN)
    nth = 1 + min(int(chance.expovariate(0.3 if often else 2.0)), 12)
    amount = chance.choice((0.01, 0.1, 0.5, 2.0))
    if kind in ("service", "agent"):
        amount = 0.0
    return Fault(kind, point, when, nth, amount)
