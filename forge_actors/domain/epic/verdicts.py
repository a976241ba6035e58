"""What a snapshot, with what is known on this machine, says of each child."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from msgspec import Struct

from forge_actors.domain.epic.circles import circles
from forge_actors.domain.epic.graph import CLOSED, OPEN, issue_name, word

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from forge_actors.domain.epic.graph import BlockerNode, ChildNode, Snapshot

    Waits: TypeAlias = Mapping[int, tuple[BlockerNode, ...]]

Kind = Literal["ready", "blocked", "closed", "unsupported", "owned", "held"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: What this machine knows of an issue: it has a worker, or is not to get one.
Fact = Literal[
    "owned",
    "uncertain",
    "settled-namespace",
    "resumable",
    "other-epic",
    "orphaned",
    "standalone-state",
    "spawn-failed",
]
FACTS: tuple[Fact, ...] = get_args(Fact)

#: Blockers that one reason names.
MAX_NAMED = 20


class Verdict(Struct, frozen=True):
    """What is to become of one child now."""

    number: int
    issue_id: int
    kind: Kind
    reason: str


def evaluate(
    snapshot: Snapshot,
    facts: Mapping[int, str],
    *,
    satisfied_by: Collection[str] = (),
) -> tuple[Verdict, ...]:
    """One verdict for each child, in their order.

    Facts are about numbers of the repository itself. What comes first counts: a worker
    that lives, a closed issue, one that cannot be worked on here, one that is held,
    one that waits for others.
    """
    waits = _waits(snapshot, satisfied_by)
    circular = frozenset(chain.from_iterable(_circles(waits)))
    verdicts = []
    for child in snapshot.children:
        fact = facts.get(child.number) if child.place == snapshot.place else None
        kind, reason = _verdict(
            child, snapshot, fact, waits[child.id], child.id in circular
        )
        verdicts.append(Verdict(child.number, child.id, kind, reason))
    return tuple(verdicts)


def ready_set(verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
    """Those that may begin now, in their order."""
    return tuple(each for each in verdicts if each.kind == "ready")


def counts(verdicts: Iterable[Verdict]) -> dict[Kind, int]:
    """How many there are of each kind, zero included."""
    found: dict[Kind, int] = dict.fromkeys(KINDS, 0)
    for each in verdicts:
        found[each.kind] += 1
    return found


def satisfied(blocker: BlockerNode, by: Collection[str] = ()) -> bool:
    """Whether nothing waits for it any more: it was closed as completed, or in a way
    that counts as well, such as `not-planned`; `any` are all of them."""
    if blocker.state != CLOSED:
        return False
    return blocker.reason == "completed" or "any" in by or word(blocker.reason) in by


def cycles(
    snapshot: Snapshot, *, satisfied_by: Collection[str] = ()
) -> tuple[tuple[int, ...], ...]:
    """Numbers of the children that wait for each other in a circle, in groups."""
    numbers = {child.id: child.number for child in snapshot.children}
    groups = _circles(_waits(snapshot, satisfied_by))
    return tuple(tuple(numbers[each] for each in group) for group in groups)


def _waits(snapshot: Snapshot, by: Collection[str]) -> Waits:
    """By the id of each child, what it waits for; a closed one waits for nothing."""
    return {
        child.id: ()
        if child.state == CLOSED
        else tuple(each for each in child.blockers if not satisfied(each, by))
        for child in snapshot.children
    }


def _circles(waits: Waits) -> tuple[tuple[int, ...], ...]:
    return circles(
        {child: [each.id for each in blockers] for child, blockers in waits.items()}
    )


def _verdict(
    child: ChildNode,
    snapshot: Snapshot,
    fact: str | None,
    waits: tuple[BlockerNode, ...],
    circular: bool,
) -> tuple[Kind, str]:
    if fact == "owned":
        return "owned", "owned"
    if child.state == CLOSED:
        reason = word(child.reason)
        return "closed", "closed" if reason is None else f"closed:{reason}"
    if (why := _unsupported(child, snapshot)) is not None:
        return "unsupported", f"unsupported:{why}"
    if fact is not None:
        return "held", f"held:{fact}"
    if circular:
        return "blocked", "blocked:cycle"
    if waits:
        return "blocked", f"blocked:{_named(waits, snapshot)}"
    return "ready", "ready"


def _unsupported(child: ChildNode, snapshot: Snapshot) -> str | None:
    if child.pull_request:
        return "pull-request"
    if child.id == snapshot.epic.id:
        return "self"
    if child.place != snapshot.place:
        return "other-repository"
    if child.children:
        return "nested-epic"
    return None if child.state == OPEN else "state"


def _named(waits: tuple[BlockerNode, ...], snapshot: Snapshot) -> str:
    names = [_blocker_name(each, snapshot) for each in waits[:MAX_NAMED]]
    if len(waits) > MAX_NAMED:
        names.append(f"and {len(waits) - MAX_NAMED} more")
    return ",".join(names)


def _blocker_name(blocker: BlockerNode, snapshot: Snapshot) -> str:
    name = issue_name(blocker.at, snapshot.place)
    if blocker.state != CLOSED:
        return name
    return f"{name}({word(blocker.reason) or 'closed'})"
