"""A night: sixty jobs of agents over three providers, and everything that can go wrong.

    python -m forge_actors.testing.simulation --night --seeds 20

Their accounts are used up until stated moments, one is logged out, agents ask and are
answered late, work is checked and mended, and the service, the node agent and the whole
machine crash. What must hold is what always must, and that no agent is in a checkout
with another one; at the end each job has ended, once.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from forge_actors.domain.requests import JobRequest
from forge_actors.runtime.limit_settings import LimitSettings
from forge_actors.runtime.settings import (
    ProviderSettings,
    RetrySettings,
    SchedulingSettings,
    Settings,
)
from forge_actors.testing.simulation.agents import CHECK, NAME
from forge_actors.testing.simulation.faults import Fault
from forge_actors.testing.simulation.machine import Run
from forge_actors.testing.simulation.outages import Outage
from forge_actors.testing.simulation.plan import Operation, Plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

    from forge_actors.testing.simulation.faults import When

MINUTE, HOUR = 60.0, 3600.0
#: Seconds in which all goes wrong, until all has to have ended, and until a person sees
#: to what needs one.
NIGHT, MORNING, PERSON = 8 * HOUR, 16 * HOUR, 20 * MINUTE
JOBS = 60
REPOSITORIES = ("app", "docs", "infra", "lib", "site", "tools")
#: How many of the jobs go to each provider, and how many may run there.
PROVIDERS = {"codex": (24, 3), "claude": (20, 2), "github-copilot": (16, 2)}
#: Whose agents work in the checkout.
IN_CHECKOUT = "github-copilot"
#: Where crashes of the service and of the node agent leave most to be found out.
SERVICE_POINTS = (
    *("commit JobAdded", "commit JobDispatched", "commit JobRequeued"),
    *("commit JobEnded", "commit AccountChanged", "send start", "take exited"),
    *("worktree make", "commit JobAnswered"),
)
WHENS: tuple[When, ...] = ("before", "after")
AGENT_POINTS = ("start process", "journal receipt", "take start", "send exited")


def draw_night(seed: int) -> Plan:
    """The night of a seed: the same one, always and everywhere."""
    chance = random.Random(f"night {seed}")  # noqa: S311 - chance, no secret
    of = [name for name, (count, _) in PROVIDERS.items() for _ in range(count)]
    chance.shuffle(of)
    jobs: dict[str, JobRequest] = {}
    runs: dict[str, tuple[Run, ...]] = {}
    for number, provider in enumerate(of):
        name = f"j{number}"
        jobs[name] = _job(chance, name, provider)
        runs[name] = tuple(_work(chance, last=n == 5) for n in range(6))
        if chance.random() < 0.5:
            jobs[name].verify = check = f"{CHECK}{name}"
            jobs[name].verify_rounds = chance.randint(0, 3)
            runs[check] = tuple(_check(chance) for _ in range(10))
    operations = [*_submissions(chance, list(jobs)), *_others(chance, list(jobs))]
    operations.sort(key=lambda operation: operation.at)
    return Plan(
        seed=seed,
        bound=False,
        settings=_settings(),
        repositories=REPOSITORIES,
        jobs=jobs,
        runs=runs,
        operations=tuple(operations),
        faults=tuple(_faults(chance)),
        outages=tuple(_outages(chance)),
        horizon=NIGHT,
        patience=MORNING,
        person=PERSON,
        apart=True,
    )


def _settings() -> Settings:
    limits = LimitSettings(
        workers=8, active_repositories=6, heavy_checks=2, agents=5, repository_workers=4
    )
    limited = {name: ProviderSettings(limit) for name, (_, limit) in PROVIDERS.items()}
    return Settings(
        limits=limits,
        retries=RetrySettings("30s"),
        scheduling=SchedulingSettings(1800.0),
        providers=limited,
    )


def _job(chance: Random, name: str, provider: str) -> JobRequest:
    return JobRequest(
        repo=chance.choice(REPOSITORIES),
        argv=["run", name],
        agent=NAME,
        prompt="Do it.",
        provider=provider,
        name=name,
        request_id=name,
        priority=f"P{chance.randint(1, 3)}",
        isolate=provider != IN_CHECKOUT,
        replay=chance.choice(("safe", "safe", "never")),
        timeout=2 * HOUR,
        grace=2.0,
    )


def _work(chance: Random, *, last: bool) -> Run:
    return Run(
        seconds=chance.uniform(MINUTE, 40 * MINUTE),
        exit_code=0 if chance.random() < 0.93 else 1,
        signal="SIGSEGV" if chance.random() < 0.02 else None,
        obeys=0.2,
        hides=chance.random() < 0.05,
        asks=not last and chance.random() < 0.12,
    )


def _check(chance: Random) -> Run:
    return Run(
        seconds=chance.uniform(5.0, 6 * MINUTE),
        exit_code=0 if chance.random() < 0.6 else 2,
        alike=chance.random() < 0.3,
    )


def _submissions(chance: Random, names: list[str]) -> Iterator[Operation]:
    at = 0.0
    while names:
        count = chance.randint(1, 8)
        batch, names = names[:count], names[count:]
        yield Operation(at, "submit", " ".join(batch))
        at += chance.uniform(0.0, 10 * MINUTE)


def _others(chance: Random, names: list[str]) -> Iterator[Operation]:
    """A few people, and two cuts of the power."""
    for _ in range(2):
        yield Operation(chance.uniform(HOUR, NIGHT), "power")
        yield Operation(chance.uniform(0, NIGHT), "cancel", chance.choice(names))
        yield Operation(chance.uniform(0, NIGHT), "restart", "", "detached")
        at = chance.uniform(0, NIGHT)
        scope = f"provider:{chance.choice(tuple(PROVIDERS))}"
        yield Operation(at, "pause", scope, chance.random() < 0.5)
        yield Operation(at + chance.uniform(0, HOUR), "resume", scope, True)
    yield Operation(chance.uniform(0, NIGHT), "take over")
    for hour in range(int(NIGHT / HOUR)):
        yield Operation((hour + chance.random()) * HOUR, "look")


def _faults(chance: Random) -> Iterator[Fault]:
    for _ in range(6):
        when = chance.choice(WHENS)
        nth = chance.randint(1, 40)
        yield Fault("service", chance.choice(SERVICE_POINTS), when, nth)
    for _ in range(4):
        when = chance.choice(WHENS)
        yield Fault("agent", chance.choice(AGENT_POINTS), when, chance.randint(1, 30))


def _outages(chance: Random) -> Iterator[Outage]:
    """Each account is used up at least once; one of them is logged out as well."""
    for provider in PROVIDERS:
        for _ in range(chance.randint(1, 2)):
            begins = chance.uniform(20 * MINUTE, 6 * HOUR)
            seconds = chance.uniform(30 * MINUTE, 4 * HOUR)
            stated = chance.random() < 0.8
            yield Outage(provider, begins, seconds, "usage", stated)
        begins = chance.uniform(0, NIGHT)
        yield Outage(provider, begins, chance.uniform(20.0, 120.0), "overload", False)
    begins = chance.uniform(0, 6 * HOUR)
    yield Outage(chance.choice(tuple(PROVIDERS)), begins, 10 * MINUTE, "auth", False)
