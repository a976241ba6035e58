"""The claims of an issue: opened, noted, closed, taken over; pure.

A claim is one admission by one run. Its generation is one more than that of the claim
before, it is closed at most once, and none is ever removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.namespace import MAX_CLAIMS, claims_problem
from forge_actors.domain.epic.records import ABSENT, Claim, Closed, RunKey, detail

if TYPE_CHECKING:
    from forge_actors.domain.epic.namespace import Classification, Expected, Namespace
    from forge_actors.domain.epic.records import (
        Admission,
        EpicRef,
        Moment,
        WorkerDiagnostics,
    )


def opened(
    namespace: Namespace,
    found: Classification,
    expected: Expected,
    *,
    claim_id: str,
    issue_id: int,
    epic: EpicRef,
    invocation_id: str,
    admission: Admission,
    now: Moment,
) -> Claim:
    """The next claim of an issue: it starts, or goes on from the state that was found,
    and takes over from a claim that is still open.

    Raises:
        StateError: what was found admits no worker, or is about another issue.
    """
    if found.kind in ("settled", "uncertain"):
        raise StateError(f"issue {namespace.issue} is {found.kind}: {found.detail}")
    if expected.issue_ids.get(namespace.issue, issue_id) != issue_id:
        raise StateError(
            f"issue {namespace.issue} has the id"
            f" {expected.issue_ids[namespace.issue]}, not {issue_id}"
        )
    resumes = found.kind == "resumable"
    taken_over = found.open_claim
    return Claim(
        claim_id=claim_id,
        generation=namespace.next_generation,
        kind="resume" if resumes else "start",
        run_key=RunKey(expected.repository_id, namespace.issue),
        issue_id=issue_id,
        epic=epic,
        invocation_id=invocation_id,
        admission=admission,
        state_ref=found.state_ref if resumes else ABSENT,
        supersedes=None if taken_over is None else taken_over.ref,
        opened_at=now,
    )


def check_open(namespace: Namespace, claim: Claim, supersede: Claim | None) -> None:
    """Whether a claim may be written next to what is there now.

    Raises:
        StateError: it may not.
    """
    if namespace.problem is not None:
        raise StateError(namespace.problem)
    if namespace.binding is None:
        raise StateError(f"issue {namespace.issue} is not bound")
    if len(namespace.claims) >= MAX_CLAIMS:
        raise StateError(f"issue {namespace.issue} has {MAX_CLAIMS} claims")
    claims = (*namespace.claims, claim)
    if (why := claims_problem(namespace.binding, claims)) is not None:
        raise StateError(why)
    if claim.closed is not None or claim.worker is not None:
        raise StateError(f"claim {claim.generation} is not new")
    if claim.state_ref != namespace.state_ref:
        raise StateError(f"claim {claim.generation} goes on from another state")
    there, named = namespace.open_claim, None if supersede is None else supersede.ref
    if claim.supersedes != named or named != (None if there is None else there.ref):
        raise StateError(
            f"claim {claim.generation} does not take over from the one that is open"
        )


def closed(claims: tuple[Claim, ...], claim: Claim, closing: Closed) -> Claim:
    """A claim as it is from now on. Only the last one can be closed for what became of
    its work; one before it only because the next one took over.

    Raises:
        StateError: it is closed by now, or not this one, or not to be closed so.
    """
    there = _the_same(claims, claim)
    taken_over = any(each.supersedes == there.ref for each in claims)
    if taken_over != (closing.classification == "superseded"):
        raise StateError(
            f"claim {claim.generation} cannot be closed as {closing.classification}:"
            f" {'a' if taken_over else 'no'} later one took over from it"
        )
    if (closing.settlement is not None) != (closing.classification == "settled"):
        raise StateError(f"claim {claim.generation}: only what is settled says where")
    bounded = structs.replace(closing, detail=detail(closing.detail))
    return structs.replace(there, closed=bounded)


def noted(claims: tuple[Claim, ...], claim: Claim, worker: WorkerDiagnostics) -> Claim:
    """A claim with what is known of its process.

    Raises:
        StateError: it is closed by now, or not this one, or has a process.
    """
    there = _the_same(claims, claim)
    if there.worker is not None:
        raise StateError(f"claim {claim.generation} has a worker by now")
    return structs.replace(there, worker=worker)


def _the_same(claims: tuple[Claim, ...], claim: Claim) -> Claim:
    for each in claims:
        if each.ref == claim.ref:
            if each.closed is not None:
                raise StateError(
                    f"claim {claim.generation} is closed: {each.closed.classification}"
                )
            return each
    raise StateError(f"there is no claim {claim.generation} with that id")


def by_state(
    found: Classification, *, exit_status: int | None, told: str, now: Moment
) -> Closed | None:
    """How a claim ends by the state that its worker left; None: it stays open.

    The exit status is kept, and decides nothing.
    """
    match found.kind:
        case "settled":
            return Closed("settled", found.settlement, exit_status, detail(told), now)
        case "resumable":
            return Closed("resumable", None, exit_status, detail(told), now)
        case "fresh":
            return Closed("abandoned", None, exit_status, detail(told), now)
        case "absent" | "uncertain":
            return None


def superseded(claims: tuple[Claim, ...], claim: Claim, now: Moment) -> Closed:
    """How a claim ends that another one took over from."""
    by = next((each for each in claims if each.supersedes == claim.ref), None)
    if by is None:
        raise StateError(f"no later claim took over from {claim.generation}")
    told = detail(f"claim {by.generation} of {by.invocation_id} took over")
    return Closed("superseded", None, None, told, now)
