"""Worktree owners: the job whose worktree another one is to work in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import ForgeError, InvalidInput, Refused
from forge_actors.domain.jobs import TERMINAL
from forge_actors.edges.sqlite.rows import spec_from

if TYPE_CHECKING:
    from forge_actors.domain.repositories import Repository
    from forge_actors.domain.requests import JobRequest
    from forge_actors.edges.sqlite.store import SqliteStore


def owner_of(
    store: SqliteStore, request: JobRequest, repo: Repository, prefix: str
) -> str:
    """The job for which the worktree was made that a request names.

    Raises:
        InvalidInput: there is none, it is not there any more or of another repository.
        Refused: it is being removed.
    """
    assert request.in_worktree is not None, request
    field = f"{prefix}in_worktree"
    for name in ("isolate", "branch", "base"):
        if getattr(request, name) is not None:
            problem = "is for a job with a worktree of its own; leave out in_worktree"
            raise InvalidInput(f"{prefix}{name}", problem)
    try:
        job = store.match(request.in_worktree)
    except ForgeError as error:
        raise InvalidInput(field, str(error)) from None
    owner = worktree_of(store, job)
    if owner is None:
        raise InvalidInput(field, f"job {job} has no worktree: it is in the checkout")
    known = store.worktree(owner)
    [(state, _, _, of)] = store.read_pending("job_attempt", owner) or [(None, 0, 0, "")]
    if known is not None:
        of = known.repo
    if of not in (repo.id, ""):
        raise InvalidInput(field, f"the worktree of job {job} is of another repository")
    if known is not None and known.state == "removing":
        raise Refused(f"{field}: the worktree of job {job} is being removed; try again")
    ended = state is None or state in TERMINAL
    if ended and (known is None or known.state != "ready"):
        why = "was never made" if known is None else f"is {known.state}"
        hint = f"; forge-actors worktree restore {owner} makes it again"
        restorable = known is not None and known.state == "removed"
        raise InvalidInput(
            field, f"the worktree of job {job} {why}{hint if restorable else ''}"
        )
    return owner


def worktree_of(store: SqliteStore, job: str) -> str | None:
    """The job for which the worktree was made in which this one works; None: it works
    in none, or nobody knows of it any more."""
    rows = store.read_pending("job_spec", job)
    isolation = spec_from(rows[0]).isolation if rows else None
    return None if isolation is None else isolation.of or job
