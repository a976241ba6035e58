"""What is made of what earlier runs of an EPIC left.

Nothing is admitted while something is wrong that cannot be told to be one issue's;
then nothing is written either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from forge_actors.domain.epic.claims import by_state, superseded
from forge_actors.domain.epic.errors import Busy, StateError
from forge_actors.domain.epic.namespace import classify
from forge_actors.domain.epic.records import Claim, detail

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from forge_actors.domain.epic.namespace import (
        Classification,
        Expected,
        Kind,
        Namespace,
    )
    from forge_actors.domain.epic.ports import Locks, RunLock
    from forge_actors.domain.epic.record_ports import Namespaces
    from forge_actors.domain.epic.records import Binding, EpicRef, Moment

#: Problems of all that are told.
MAX_PROBLEMS = 20

#: The facts that an earlier run can leave behind.
LeftFact: TypeAlias = Literal["settled-namespace", "uncertain"]


class Report(Struct, frozen=True):
    """What was found of one issue, and made of it."""

    issue: int
    #: Somebody has it now; nothing was read.
    live: bool = False
    #: What keeps it from being admitted, if anything does.
    fact: LeftFact | None = None
    classification: Kind | None = None
    detail: str = ""
    #: The claim that is open still: of a resumable one, to be taken over from.
    open_claim: Claim | None = None
    #: The claim that was closed, as it is now.
    closed: Claim | None = None


class Reconciled(Struct, frozen=True):
    """What is left of earlier runs of an EPIC."""

    #: By issue. None of an issue of which nothing is kept.
    reports: tuple[Report, ...] = ()
    #: Each one line. With one of them nothing may be admitted.
    problems: tuple[str, ...] = ()

    @property
    def admissible(self) -> bool:
        """Whether anything may be admitted at all."""
        return not self.problems


def reconcile(
    namespaces: Namespaces,
    locks: Locks,
    epic: EpicRef,
    expected: Expected,
    only: Collection[int] | None = None,
    *,
    now: Moment,
) -> Reconciled:
    """Look at what is kept of an EPIC's issues, or of some of them, one after the
    other under its lock, and close the claims of which no more can come.

    What is wrong anywhere in the repository is looked for each time.
    """
    bindings, problems = survey(namespaces, epic, expected)
    if problems:
        return Reconciled(problems=problems)
    reports = []
    for issue, binding in sorted(bindings.items()):
        wanted = only is None or issue in only
        if not wanted or (binding is not None and binding.epic != epic):
            continue
        report = _look_at(namespaces, locks, issue, expected, now)
        if report is not None:
            reports.append(report)
    return Reconciled(tuple(reports))


def survey(
    namespaces: Namespaces, epic: EpicRef, expected: Expected
) -> tuple[dict[int, Binding | None], tuple[str, ...]]:
    """Whose the namespaces are, and what is wrong that nobody can tell whose it is."""
    problems = list(scheduler_problems(namespaces, epic, expected))
    listing = namespaces.issues()
    problems += listing.problems
    bindings: dict[int, Binding | None] = {}
    for issue in listing.issues:
        try:
            bindings[issue] = namespaces.binding(issue)
        except StateError as error:
            problems.append(f"the binding of issue {issue} cannot be read: {error}")
    problems += _strangers(bindings, expected)
    told = [detail(each) for each in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        told.append(f"and {len(problems) - MAX_PROBLEMS} problems more")
    return bindings, tuple(told)


def scheduler_problems(
    namespaces: Namespaces, epic: EpicRef, expected: Expected
) -> tuple[str, ...]:
    """What is wrong with what is told of the last run, if anything is; that there was
    none is not."""
    try:
        found = namespaces.read_scheduler(epic.number)
    except StateError as error:
        return (f"scheduler.json of EPIC {epic.number} cannot be read: {error}",)
    if found is None or found.repository.id == expected.repository_id:
        return ()
    why = (
        f"scheduler.json of EPIC {epic.number} is of the repository with the id"
        f" {found.repository.id}; this one has {expected.repository_id}"
    )
    return (why,)


def _strangers(
    bindings: Mapping[int, Binding | None], expected: Expected
) -> Iterable[str]:
    owners: dict[int, int] = {}
    for issue, binding in sorted(bindings.items()):
        if binding is None:
            continue
        there = binding.run_key.repository_id
        if there != expected.repository_id:
            yield (
                f"issue {issue} is bound to the repository with the id {there}; this"
                f" one has {expected.repository_id}"
            )
        first = owners.setdefault(binding.issue_id, issue)
        if first != issue:
            yield (
                f"issues {first} and {issue} are both bound to the id"
                f" {binding.issue_id}"
            )


def _look_at(
    namespaces: Namespaces,
    locks: Locks,
    issue: int,
    expected: Expected,
    now: Moment,
) -> Report | None:
    try:
        lock = locks.take_run(issue)
    except Busy:
        return Report(issue, live=True, detail="somebody has it now")
    except StateError as error:
        return Report(issue, fact="uncertain", detail=detail(str(error)))
    try:
        namespace = namespaces.read(lock, issue)
        found = classify(namespace, expected)
        return _settle(namespaces, lock, namespace, found, now)
    except StateError as error:
        why = detail(f"what is left of it cannot be put right: {error}")
        return Report(issue, fact="uncertain", detail=why)
    finally:
        lock.close()


def _settle(
    namespaces: Namespaces,
    lock: RunLock,
    namespace: Namespace,
    found: Classification,
    now: Moment,
) -> Report | None:
    issue, kind, claim = namespace.issue, found.kind, found.open_claim
    if kind == "uncertain":
        return Report(issue, False, "uncertain", kind, found.detail, claim)
    if namespace.binding is None:
        return None
    tidy(namespaces, lock, namespace, now)
    fact: LeftFact | None = "settled-namespace" if kind == "settled" else None
    if claim is None or kind == "resumable":
        return Report(issue, False, fact, kind, found.detail, claim)
    closing = by_state(found, exit_status=None, told=_LEFT, now=now)
    closed = None
    if closing is not None:
        closed = namespaces.close_claim(lock, claim, closing)
    return Report(issue, False, fact, kind, found.detail, closed=closed)


_LEFT = "the run that opened it ended before it was closed"


def tidy(
    namespaces: Namespaces, lock: RunLock, namespace: Namespace, now: Moment
) -> None:
    """Close the claims that later ones took over from before a crash."""
    claims = namespace.claims
    for claim in namespace.outrun:
        namespaces.close_claim(lock, claim, superseded(claims, claim, now))
