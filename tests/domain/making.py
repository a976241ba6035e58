"""Jobs, receipts and process identities for the tests of the domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.backoff import Backoff
from forge_actors.domain.capacity import Capacity, Limits, tokens_for
from forge_actors.domain.claims import parse_claim, strongest
from forge_actors.domain.jobs import Job
from forge_actors.domain.launch import ProcessIdentity, Receipt

if TYPE_CHECKING:
    from forge_actors.domain.changes import Change
    from forge_actors.domain.jobs import Kind, Replay, State
    from forge_actors.domain.launch import Ending
    from forge_actors.domain.ledger import Ledger
    from forge_actors.domain.recovery import Outcome, StopReason

AT_ONCE = Backoff(0.0, 0.0)
IDENTITY = ProcessIdentity("boot", 4242, 77)


def make_job(
    name: str,
    *claims: str,
    priority: int = 2,
    queued_at: float = 0.0,
    kind: Kind = "repository-command",
    provider: str | None = None,
    replay: Replay = "never",
    attempt: int = 0,
    state: State = "queued",
    max_attempts: int = 3,
    exit_attempts: int = 1,
    after: tuple[str, ...] = (),
    queue_budget: float | None = None,
    admission_budget: float | None = None,
) -> Job:
    return Job(
        id=name,
        repo="repo",
        kind=kind,
        priority=priority,
        claims=strongest(parse_claim(text, checkout="/here") for text in claims),
        tokens=tokens_for(kind, provider),
        queued_at=queued_at,
        state=state,
        after=after,
        replay=replay,
        attempt=attempt,
        max_attempts=max_attempts,
        exit_attempts=exit_attempts,
        queue_budget=queue_budget,
        admission_budget=admission_budget,
    )


def make_receipt(
    ending: Ending = "exit",
    *,
    exit_code: int | None = None,
    signal: str | None = None,
    began: bool = True,
    error: str | None = None,
    stderr: str = "",
    out_of_memory: bool = False,
) -> Receipt:
    return Receipt(
        job="a",
        attempt=1,
        fence=1,
        ending=ending,
        ended_at=20.0,
        started_at=10.0 if began else None,
        exit_code=exit_code,
        signal=signal,
        error=error,
        stderr_tail=stderr,
        out_of_memory=out_of_memory,
    )


SUCCESS = make_receipt(exit_code=0)
FAILURE = make_receipt(exit_code=7)
INTERRUPTED = make_receipt("owner", signal="SIGTERM")


def dispatch_any(ledger: Ledger, now: float) -> str | None:
    """Dispatch the first job that is offered; its id."""
    for offer in ledger.offers(now):
        _, job = ledger.dispatch(offer.tokens, now)
        assert job is not None
        assert job.id == offer.job
        return job.id
    return None


def end_attempt(
    ledger: Ledger,
    job: str,
    attempt: int,
    receipt: Receipt | None,
    stopped: StopReason | None,
    now: float,
) -> tuple[list[Change], Outcome | None]:
    """The move `finish`, with a receipt that has the fence of the job's dispatch."""
    held = ledger.jobs.get(job)
    if receipt is not None and held is not None and held.fence is not None:
        receipt = structs.replace(receipt, job=job, attempt=attempt, fence=held.fence)
    return ledger.finish(job, attempt, receipt, stopped, now)


def make_capacity(
    *,
    workers: int = 4,
    heavy_checks: int = 2,
    agents: int = 4,
    local: int = 1,
    active_repositories: int = 4,
    pressure_workers: int = 1,
    overtake_after: float = 1800.0,
) -> Capacity:
    tokens = {
        "workers": workers,
        "heavy_checks": heavy_checks,
        "agents": agents,
        "provider:local": local,
    }
    return Capacity(
        Limits(
            tokens=tokens,
            active_repositories=active_repositories,
            pressure_workers=pressure_workers,
            overtake_after=overtake_after,
        )
    )
