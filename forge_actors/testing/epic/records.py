"""Records of EPIC runs for tests: each whole and right, but for what a test changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.epic.namespace import Expected
from forge_actors.domain.epic.records import (
    ABSENT,
    Admission,
    AdmissionStatus,
    Assignment,
    Binding,
    Claim,
    Closed,
    ConfigSummary,
    EngineState,
    EpicRef,
    Invocation,
    RepositoryRef,
    RunKey,
    Scheduler,
    WorkerDiagnostics,
)

if TYPE_CHECKING:
    from forge_actors.domain.epic.records import ClaimRef, Moment, Phase, StateRef

EPIC = EpicRef(7, 9007)
OTHER_EPIC = EpicRef(8, 9008)
REPOSITORY_ID = 101
OWNER, NAME = "octo", "demo"
DIGEST = f"sha256:{'0' * 64}"
ADMISSION = Admission(DIGEST, DIGEST, "2026-11-29T20:00:00Z")
#: What the server says that everything is, no issue known yet.
EXPECTED = Expected(REPOSITORY_ID, OWNER, NAME)


def moment(second: int) -> Moment:
    """A moment of one day, by its second."""
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return f"2026-11-30T{hour:02}:{minute:02}:{second:02}Z"


def issue_id(issue: int) -> int:
    return 9000 + issue


def made_binding(
    issue: int,
    *,
    repository_id: int = REPOSITORY_ID,
    number: int | None = None,
    id: int | None = None,  # noqa: A002
    epic: EpicRef = EPIC,
) -> Binding:
    return Binding(
        run_key=RunKey(repository_id, number or issue),
        issue_id=id or issue_id(issue),
        owner=OWNER,
        name=NAME,
        epic=epic,
        worktree=f"/octo/demo/.git/forge-actors/worktrees/{issue}",
        created_at=moment(0),
    )


def made_assignment(issue: int, body: str = "Do it.") -> Assignment:
    return Assignment(
        run_key=RunKey(REPOSITORY_ID, issue),
        issue_id=issue_id(issue),
        url=f"https://github.com/{OWNER}/{NAME}/issues/{issue}",
        title="A thing to do",
        body=body,
    )


def made_claim(
    issue: int,
    generation: int = 1,
    *,
    state_ref: StateRef = ABSENT,
    supersedes: ClaimRef | None = None,
    closed: Closed | None = None,
    epic: EpicRef = EPIC,
    repository_id: int = REPOSITORY_ID,
    claim_id: str = "",
) -> Claim:
    return Claim(
        claim_id=claim_id or f"c-{issue:04}{generation:04}",
        generation=generation,
        kind="start" if state_ref.kind == "absent" else "resume",
        run_key=RunKey(repository_id, issue),
        issue_id=issue_id(issue),
        epic=epic,
        invocation_id=f"i-{generation:08}",
        admission=ADMISSION,
        state_ref=state_ref,
        supersedes=supersedes,
        opened_at=moment(generation),
        closed=closed,
    )


def made_closed(
    classification: str = "resumable", settlement: Phase | None = None
) -> Closed:
    return Closed(
        classification,  # type: ignore[arg-type]
        settlement,
        exit_status=0,
        detail="it ended",
        at=moment(100),
    )


def made_worker(pid: int = 4242) -> WorkerDiagnostics:
    return WorkerDiagnostics(pid, 987654, moment(50), "/octo/demo/workers/1.log")


def made_state(
    issue: int,
    phase: Phase = "implement",
    *,
    second: int = 10,
    run_id: str = "r-00000001",
    number: int | None = None,
    url: str = "",
) -> EngineState:
    return EngineState(
        run_key=RunKey(REPOSITORY_ID, number or issue),
        issue_url=url or f"https://github.com/{OWNER}/{NAME}/issues/{issue}",
        run_id=run_id,
        phase=phase,
        config_digest=DIGEST,
        branch=f"forge/{issue}",
        base_commit=None,
        tries={phase: 1},
        updated_at=moment(second),
    )


def made_scheduler(
    epic: EpicRef = EPIC, *, repository_id: int = REPOSITORY_ID
) -> Scheduler:
    return Scheduler(
        repository=RepositoryRef(repository_id, OWNER, NAME),
        epic=epic,
        invocation=Invocation("i-00000001", moment(0)),
        config=ConfigSummary(3, 60.0, 30.0, DIGEST),
        admission=AdmissionStatus("open"),
        last_snapshot=None,
        created_at=moment(0),
        updated_at=moment(0),
    )
