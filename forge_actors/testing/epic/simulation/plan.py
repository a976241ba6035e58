"""What one run is made of: data, drawn from a seed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from forge_actors.testing.epic.simulation.points import (
    LOCK,
    LOOKS,
    READS,
    STEPS,
    WRITES,
    Fault,
    Kind,
    When,
    all_faults,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from forge_actors.domain.epic.records import Phase

#: The EPIC, another one, and an issue of another repository that blocks some.
EPIC, OTHER = 7, 8
#: Seconds in which people do things and things go wrong.
HORIZON = 110.0
#: Interrupts that a worker can be sent and take no notice of: more than it ever gets.
NEVER = 99

Failure = Literal["no-log", "nothing", "runs"]
Kept = Literal["other-epic", "spoiled", "standalone"]


class Child(Struct, frozen=True):
    """One sub-issue as it is in the beginning."""

    number: int
    blocked_by: tuple[int, ...] = ()
    kind: Literal["issue", "closed", "pull-request", "nested", "elsewhere", "self"] = (
        "issue"
    )
    #: An issue of another repository blocks it.
    stranger: Literal["open", "closed"] | None = None
    #: What is on the disk of it although this EPIC has never run.
    kept: Kept | None = None


class Work(Struct, frozen=True):
    """What one worker does."""

    #: Seconds from one save to the next, and what is saved then.
    saves: tuple[tuple[float, Phase], ...] = ()
    #: Seconds from the last save to its end.
    rest: float = 0.0
    status: int | None = 0
    #: The interrupt at which it saves and ends.
    obeys: int = 1
    #: Whether it looks for a request to stop after each save.
    drains: bool = True
    #: Seconds that something it started keeps the lock of the issue after its end.
    leaks: float = 0.0
    #: Seconds that starting it takes, and whether that fails.
    starts: float = 0.0
    failure: Failure | None = None
    #: Seconds after its end until a person closes the issue, if it is ready for that.
    merged: float | None = None


#: What workers do once nothing goes wrong any more.
CALM = Work(saves=((1.0, "ready_for_merge"),))


class Operation(Struct, frozen=True):
    """What somebody does at a moment; `issue` and `more` as the verb needs them."""

    at: float
    verb: str
    issue: int = 0
    more: Any = None

    def __str__(self) -> str:
        about = f" #{self.issue}" if self.issue else ""
        more = "" if self.more is None else f" {self.more}"
        return f"{self.at:8.2f} {self.verb}{about}{more}"


class Plan(Struct, frozen=True):
    """One run; `works` by issue, one worker after the other, the last one for ever."""

    seed: int
    children: tuple[Child, ...]
    works: dict[int, tuple[Work, ...]]
    operations: tuple[Operation, ...]
    faults: tuple[Fault, ...]
    limit: int = 2
    poll: float = 20.0
    grace: float = 10.0
    satisfied_by: tuple[str, ...] = ("completed",)
    #: Seconds of one read of the graph, and of one that is slow.
    read: float = 0.0
    slow: float = 10.0
    #: Seconds from the end of one scheduler to the start of the next.
    pause: float = 5.0
    horizon: float = HORIZON
    #: Seconds until a slot is granted by others; None: nobody else has a say in it.
    grants: float | None = None


def draw(seed: int) -> Plan:
    """The plan of a seed."""
    chance = random.Random(f"epic {seed}")  # noqa: S311 - chance, no secret
    children = _children(chance)
    numbers = [child.number for child in children]
    operations = [*_people(chance, numbers), *_stops(chance), *_others(chance, numbers)]
    faults = [*_faults(chance)]
    poll = chance.choice((5.0, 20.0, 40.0))
    if chance.random() < 0.12:
        poll = 5.0
        if chance.random() < 0.5:
            faults.append(Fault("refuse", "read snapshot", "before", 2))
        else:
            operations += _with_junk(numbers)
        verb, whose = chance.choice((("now", "this"), ("signal", None)))
        operations.append(Operation(chance.uniform(6.0, 20.0), verb, 0, whose))
    operations.sort(key=lambda operation: operation.at)
    return Plan(
        seed=seed,
        children=children,
        works={
            number: tuple(_work(chance) for _ in range(3)) for number in range(1, 12)
        },
        operations=tuple(operations),
        faults=tuple(faults),
        limit=chance.choice((1, 2, 2, 3)),
        poll=poll,
        grace=chance.choice((0.0, 3.0, 15.0)),
        satisfied_by=chance.choice(((), ("completed",), ("not-planned",), ("any",))),
        read=chance.choice((0.0, 0.0, 0.05, 0.5)),
        slow=chance.choice((2.0, 12.0, 40.0)),
        pause=chance.uniform(5.0, 60.0),
        grants=chance.choice((None, None, 0.5, 8.0)),
    )


# -- the graph -----------------------------------------------------------------------


def _children(chance: Random) -> tuple[Child, ...]:
    count = chance.randint(2, 6)
    found = []
    for number in range(1, count + 1):
        others = [each for each in range(1, count + 2) if each != number]
        few = chance.choices((0, 1, 2), (5, 3, 1))[0]
        # Most wait for earlier ones; a few for later ones too, even in circles.
        among = others if chance.random() < 0.2 else [n for n in others if n < number]
        found.append(
            Child(
                number if number != EPIC else 20,
                tuple(sorted(chance.sample(among, min(few, len(among))))),
                chance.choices(
                    ("issue", "closed", "pull-request", "nested", "elsewhere", "self"),
                    (40, 3, 1, 1, 1, 1),
                )[0],
                chance.choices((None, "open", "closed"), (30, 1, 1))[0],
                chance.choices(
                    (None, "other-epic", "spoiled", "standalone"), (60, 1, 1, 1)
                )[0],
            )
        )
    return tuple(found)


# -- workers -------------------------------------------------------------------------

_MIDDLE: tuple[Phase, ...] = ("prepare", "implement", "check", "review", "publish")
_LAST: tuple[Phase, ...] = ("ready_for_merge", "done", "blocked", "failed")


def _work(chance: Random) -> Work:
    phases = list(_MIDDLE[: chance.randint(0, 5)])
    if chance.random() < 0.75:
        phases.append(chance.choices(_LAST, (5, 1, 1, 1))[0])
    pace = chance.choice((0.0, 2.0, 8.0, 20.0))
    saves = tuple((chance.uniform(0, pace), phase) for phase in phases)
    return Work(
        saves=saves,
        rest=chance.choice((0.0, 0.0, 1.0, 10.0)),
        status=chance.choice((0, 0, 0, 1, -9, 130, None)),
        obeys=chance.choice((1, 1, 1, 2, NEVER)),
        drains=chance.random() < 0.7,
        leaks=chance.choice((0.0,) * 6 + (1.0, 8.0, 30.0)),
        starts=chance.choice((0.0, 0.0, 0.0, 0.1, 1.0)),
        failure=chance.choice((None,) * 12 + ("no-log", "nothing", "runs")),
        merged=chance.choice((None, 0.0, 5.0, 20.0)),
    )


# -- people --------------------------------------------------------------------------


def _people(chance: Random, numbers: list[int]) -> Iterator[Operation]:
    verbs: dict[str, Callable[[], object]] = {
        "close": lambda: chance.choice(("completed", "completed", "not_planned", None)),
        "reopen": lambda: None,
        "block": lambda: chance.choice(numbers),
        "unblock": lambda: chance.choice(numbers),
        "give away": lambda: None,
        "take back": lambda: None,
        "shuffle": chance.random,
        "rename": lambda: "other",
        "recreate": lambda: None,
        "remove": lambda: None,
        "title": lambda: None,
        "add": lambda: None,
    }
    weights = (8, 6, 5, 4, 2, 2, 2, 1, 1, 1, 1, 3)
    for _ in range(chance.randint(0, 8)):
        verb = chance.choices(tuple(verbs), weights)[0]
        at = chance.uniform(0, HORIZON)
        issue = 0 if verb in ("shuffle", "rename", "add") else chance.choice(numbers)
        yield Operation(at, verb, issue, verbs[verb]())


def _stops(chance: Random) -> Iterator[Operation]:
    """Each moment one or two of them, sometimes in the same instant."""
    verbs = ("drain", "now", "signal", "garbage", "odd request")
    for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
        at = chance.uniform(0, HORIZON)
        for _ in range(chance.choice((1, 1, 2, 3))):
            verb = chance.choices(verbs, (3, 4, 6, 1, 1))[0]
            whose = chance.choice(("any", "this", "this", "another"))
            requested = verb in ("drain", "now")
            yield Operation(at, verb, 0, whose if requested else None)
            at += chance.choice((0.0, 0.05, 0.5, 5.0))


def _others(chance: Random, numbers: list[int]) -> Iterator[Operation]:
    """Those who look at locks, machines that end processes, strangers on the disk."""
    for _ in range(chance.choice((0, 1, 3, 6))):
        at, issue = chance.uniform(0, HORIZON), chance.choice(numbers)
        seconds = chance.choice((0.05, 0.5, 5.0, 60.0))
        yield Operation(at, "probe", issue, seconds)
    for verb, often in (("kill scheduler", 0.3), ("kill worker", 0.4)):
        if chance.random() < often:
            at, issue = chance.uniform(0, HORIZON), chance.choice(numbers)
            yield Operation(at, verb, issue if "worker" in verb else 0)
    if chance.random() < 0.05:
        at = chance.uniform(0, HORIZON)
        yield Operation(at, "junk")
        yield Operation(at + chance.uniform(1, 60), "clear junk")
    if chance.random() < 0.1:
        at = chance.uniform(0, HORIZON)
        yield Operation(at, "full")
        yield Operation(at + chance.choice((0.1, 3.0, 30.0)), "space")
    if chance.random() < 0.1:
        seconds = chance.choice((-86_400.0, -1.0, 3600.0))
        yield Operation(chance.uniform(0, HORIZON), "clock", 0, seconds)
    if chance.random() < 0.12:
        yield Operation(chance.uniform(0, HORIZON), "break record")


def _with_junk(numbers: list[int]) -> Iterator[Operation]:
    """Others have what has not begun yet, and something is there that is no issue."""
    for number in numbers:
        yield Operation(0.5, "probe", number, 60.0)
    yield Operation(5.5, "junk")
    yield Operation(60.0, "clear junk")


# -- faults --------------------------------------------------------------------------

#: Points that few runs pass often are drawn as often as others; of these, more.
_RARE = (
    ("claim superseded", 6),
    ("claim settled", 2),
    ("claim abandoned", 3),
    ("claim resumable", 3),
    ("scheduler admits otherwise", 3),
    ("scheduler aside", 12),
    ("request removed", 5),
)
_KINDS: dict[str, list[tuple[Kind, When]]] = {}
for _kind, _point, _when in all_faults():
    _KINDS.setdefault(_point, []).append((_kind, _when))
_KINDS["read snapshot"] += [("change", "after")] * 5
_POINTS = [*WRITES, *READS, *STEPS, *LOOKS, LOCK, *["read snapshot"] * 3, "read reread"]
_POINTS += [point for point, times in _RARE for _ in range(times)]


def _faults(chance: Random) -> Iterator[Fault]:
    for _ in range(chance.choice((0, 2, 4, 6))):
        point = chance.choice(_POINTS)
        kind, when = chance.choice(_KINDS[point])
        most = 30 if point in ("pass", LOCK, *LOOKS) else 4
        yield Fault(kind, point, when, chance.randint(1, most))
