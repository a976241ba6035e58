"""Which jobs a chaos run submits: made from one seed, and nothing else."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from forge_actors.domain.capacity import tokens_for
from forge_actors.domain.claims import Claim, parse_claim

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Replay = Literal["never", "safe", "always"]
Child = Literal["none", "plain", "session", "hidden"]

PROGRAM = Path(__file__).with_name("job.py")
#: Of how many jobs before it one may run after some.
REACH = 30
#: What the service does with jobs that say nothing of it.
DEFAULT_ATTEMPTS = 3
#: A job that runs into its time limit, and what it has until it is killed.
LONG, LIMIT, GRACE = 3600.0, 1.0, 0.3


@dataclass(frozen=True)
class Plan:
    """One job: what it does, and what it is submitted with."""

    name: str
    repo: str
    seconds: float
    kind: Literal["repository-command", "check"] = "repository-command"
    replay: Replay = "never"
    #: Exit codes of its attempts; further ones exit with the last.
    codes: tuple[int, ...] = (0,)
    child: Child = "none"
    linger: float = 0.0
    claims: tuple[str, ...] = ()
    read_only: bool = False
    after: tuple[str, ...] = ()
    max_attempts: int | None = None
    timeout: float | None = None
    priority: str = "P2"
    provider: str | None = None

    @property
    def deaf(self) -> bool:
        """It ignores the stop signal."""
        return self.timeout is not None

    @property
    def tokens(self) -> tuple[str, ...]:
        return tokens_for(self.kind, self.provider)

    @property
    def attempts(self) -> int:
        return self.max_attempts or DEFAULT_ATTEMPTS

    @property
    def exit_attempts(self) -> int:
        """How often it may exit with something else than 0."""
        return (self.max_attempts or 1) if self.replay == "always" else 1

    def held(self, checkout: str) -> tuple[Claim, ...]:
        """The claims that it has to hold while it runs."""
        if self.claims:
            return tuple(parse_claim(text, checkout=checkout) for text in self.claims)
        if self.read_only:
            return ()
        default = "read:workspace" if self.kind == "check" else "write:repo-content"
        return (parse_claim(default, checkout=checkout),)


@dataclass(frozen=True)
class Place:
    """Where the jobs of a run write and lock: outside of the home."""

    folder: Path
    repositories: Mapping[str, Path] = field(default_factory=dict)

    def told(self, plan: Plan) -> Path:
        return self.folder / "told" / plan.name

    def make(self) -> None:
        for name in ("told", "locks"):
            (self.folder / name).mkdir(parents=True)

    def locks(self, plan: Plan) -> list[str]:
        """Those claims that a lock of a file means exactly."""
        found = []
        for claim in plan.held(str(self.repositories[plan.repo])):
            if claim.family == "path":
                continue  # beside others of its kind, but beside no other claim
            name = f"{plan.repo}.{claim.family}.{claim.rest.strip('*')}"
            if claim.family == "workspace":
                name = f"{plan.repo}.repo-content."
            how = "shared" if claim.mode == "read" else "alone"
            found.append(f"{how}:{self.folder / 'locks' / name}")
        return found

    def request(self, plan: Plan, after: Sequence[str]) -> dict[str, Any]:
        """The body of its submission; `after` are ids, or names of the same batch."""
        argv = [
            *(sys.executable, "-I", "-S", str(PROGRAM), str(self.told(plan))),
            *(f"{plan.seconds:.3f}", ",".join(map(str, plan.codes))),
            *(plan.child, f"{plan.linger:.3f}", "deaf" if plan.deaf else "hears"),
            *self.locks(plan),
        ]
        wanted: dict[str, Any] = {
            "repo": plan.repo,
            "argv": argv,
            "kind": plan.kind,
            "name": plan.name,
            "request_id": plan.name,
            "replay": plan.replay,
            "priority": plan.priority,
            "claims": list(plan.claims),
            "read_only": plan.read_only,
            "after": list(after),
            "grace": GRACE,
        }
        more = {
            "max_attempts": plan.max_attempts,
            "timeout": plan.timeout,
            "provider": plan.provider,
        }
        return wanted | {key: value for key, value in more.items() if value is not None}


def make_plans(rng: random.Random, count: int, repos: Sequence[str]) -> list[Plan]:
    """Jobs of mixed kinds, each after at most some of those before it."""
    plans: list[Plan] = []
    for number in range(count):
        plans.append(_mixed(rng, f"job-{number:05d}", rng.choice(repos), plans))
    return plans


def quick_plans(rng: random.Random, count: int, repos: Sequence[str]) -> list[Plan]:
    """Jobs of 20 ms that hinder each other in nothing."""
    replays: tuple[Replay, ...] = ("never", "safe", "always")
    return [
        Plan(
            f"job-{number:05d}",
            rng.choice(repos),
            0.02,
            replay=replays[number % 3],
            codes=(3 if number % 10 == 0 else 0,),
            read_only=True,
        )
        for number in range(count)
    ]


def _mixed(rng: random.Random, name: str, repo: str, before: Sequence[Plan]) -> Plan:
    kind: Literal["repository-command", "check"]
    kind = "check" if rng.random() < 0.25 else "repository-command"
    replay: Replay = rng.choices(("never", "safe", "always"), (45, 35, 20))[0]
    codes: tuple[int, ...] = (0,)
    max_attempts = rng.choice((None, None, 2, 5))
    if rng.random() < 0.15:
        codes = (rng.randint(1, 99),)
        if replay == "always" and rng.random() < 0.5:
            codes = (*codes, 0)
    child: Child = rng.choices(("none", "plain", "session", "hidden"), (80, 6, 7, 7))[0]
    claims: tuple[str, ...] = ()
    read_only = False
    if kind == "repository-command":
        draw = rng.random()
        if draw < 0.2:
            claims = (f"write:temp:cache{rng.randrange(2)}",)
        elif draw < 0.3:
            claims = (f"read:temp:cache{rng.randrange(2)}",)
        elif draw < 0.45:
            claims = (f"write:path:src{rng.randrange(3)}/a",)
        elif draw < 0.8:
            read_only = True
    after: tuple[str, ...] = ()
    if before and rng.random() < 0.12:
        # After some of those that are likely to succeed: else chains end at once.
        likely = [one.name for one in before[-REACH:] if one.codes[-1] == 0]
        after = tuple(rng.sample(likely, min(len(likely), rng.randint(1, 3))))
    late = rng.random() < 0.02
    return Plan(
        name,
        repo,
        LONG if late else _seconds(rng),
        kind=kind,
        replay=replay,
        codes=codes,
        child=child,
        linger=LONG if rng.random() < 0.3 else rng.uniform(0.01, 0.5),
        claims=claims,
        read_only=read_only,
        after=after,
        max_attempts=max_attempts,
        timeout=LIMIT if late else None,
        priority=rng.choice(("P0", "P1", "P2", "P2", "P3")),
        provider="claude" if rng.random() < 0.05 else None,
    )


def _seconds(rng: random.Random) -> float:
    """20 ms to 2 s, most of them short."""
    low, high = rng.choices(((0.02, 0.2), (0.2, 0.8), (0.8, 2.0)), (70, 25, 5))[0]
    return rng.uniform(low, high)
