"""The files of an EPIC run: what is in them, strictly read.

A record is one JSON object without unknown keys, of a schema that is known. Whatever
is wrong with one is a StateError, never a default. Times are RFC 3339 in UTC.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.github.places import MAX_ID, MAX_NUMBER
from forge_actors.domain.harmless import clean, clean_lines
from forge_actors.domain.redaction import bounded, redact

SCHEMA = 1
#: Bytes of one record, and characters of a detail in it.
MAX_RECORD = 256 * 1024
MAX_DETAIL = 500
#: Characters of the title and the body of an issue.
MAX_TITLE, MAX_BODY = 300, 64 * 1024
#: Bytes of the record of one.
MAX_ASSIGNMENT = 512 * 1024

Number = Annotated[int, Meta(ge=1, lt=MAX_NUMBER)]
Id = Annotated[int, Meta(ge=1, lt=MAX_ID)]
Digest = Annotated[str, Meta(pattern=r"\Asha256:[0-9a-f]{64}\Z")]
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
Moment = Annotated[str, Meta(pattern=rf"\A{_DAY}T{_TIME}Z\Z", max_length=32)]
Name = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_.-]{1,100}\Z")]
Detail = Annotated[str, Meta(max_length=MAX_DETAIL)]
ClaimId = Annotated[str, Meta(pattern=r"\Ac-[0-9a-z]{8,40}\Z")]
InvocationId = Annotated[str, Meta(pattern=r"\Ai-[0-9a-z]{8,40}\Z")]
Generation = Annotated[int, Meta(ge=1, lt=MAX_NUMBER)]
SchemaNumber = Annotated[int, Meta(ge=SCHEMA, le=SCHEMA)]

#: Where the work on one issue is. A worker stops at a settled one.
Phase = Literal[
    "prepare",
    "implement",
    "check",
    "review",
    "publish",
    "ready_for_merge",
    "done",
    "blocked",
    "failed",
]
SETTLED: tuple[Phase, ...] = ("ready_for_merge", "done", "blocked", "failed")
EndReason = Literal[
    "nothing-admissible", "drained", "stopped", "interrupted", "degraded"
]
Classification = Literal["settled", "resumable", "abandoned", "superseded"]

R = TypeVar("R", bound="Record")


class Record(
    Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=False
):
    """One file; `schema` is told apart before anything else is read."""

    schema: SchemaNumber = SCHEMA


class EpicRef(Struct, frozen=True, forbid_unknown_fields=True, order=True):
    number: Number
    id: Id


class RunKey(Struct, frozen=True, forbid_unknown_fields=True, order=True):
    """What a namespace is about."""

    repository_id: Id
    issue_number: Number


class Binding(Record, frozen=True, kw_only=True):
    """Which issue of which EPIC has this namespace; written once."""

    run_key: RunKey
    issue_id: Id
    owner: Name
    name: Name
    epic: EpicRef
    worktree: Annotated[str, Meta(max_length=4096)]
    created_at: Moment


class StateRef(Struct, frozen=True, forbid_unknown_fields=True):
    """The state of the engine that a claim goes on from."""

    kind: Literal["absent", "present"]
    digest: Digest | None = None
    phase: Phase | None = None
    run_id: Annotated[str, Meta(max_length=64)] | None = None
    #: When that state was saved: an older one must not be gone on with.
    updated_at: Moment | None = None


ABSENT = StateRef("absent")


class Admission(Struct, frozen=True, forbid_unknown_fields=True):
    """What was known of the issue when it was admitted."""

    snapshot_digest: Digest
    node_digest: Digest
    observed_at: Moment


class ClaimRef(Struct, frozen=True, forbid_unknown_fields=True):
    claim_id: ClaimId
    generation: Generation


class WorkerDiagnostics(Struct, frozen=True, forbid_unknown_fields=True):
    """For people only: no signal is ever sent to a process that a file names."""

    pid: Annotated[int, Meta(ge=1)]
    #: Clock ticks after the boot; None where the system does not tell.
    start_time: int | None
    recorded_at: Moment
    log: Annotated[str, Meta(max_length=4096)]


class Closed(Struct, frozen=True, forbid_unknown_fields=True):
    classification: Classification
    settlement: Phase | None
    exit_status: int | None
    detail: Detail
    at: Moment


class Claim(Record, frozen=True, kw_only=True):
    """One admission of an issue by one invocation; open until `closed`."""

    claim_id: ClaimId
    generation: Generation
    kind: Literal["start", "resume"]
    run_key: RunKey
    issue_id: Id
    epic: EpicRef
    invocation_id: InvocationId
    admission: Admission
    state_ref: StateRef
    supersedes: ClaimRef | None
    opened_at: Moment
    worker: WorkerDiagnostics | None = None
    closed: Closed | None = None

    @property
    def ref(self) -> ClaimRef:
        return ClaimRef(self.claim_id, self.generation)


class EffectDone(Struct, frozen=True, forbid_unknown_fields=True):
    """Something outside that was begun, and what became of it."""

    effect: Literal["push", "pull_request"]
    #: The commit that it is about.
    commit: Annotated[str, Meta(pattern=r"\A[0-9a-f]{40,64}\Z")]
    #: `begun` is written before it; one that stays so is looked at, never repeated.
    state: Literal["begun", "done", "failed"]
    detail: Detail = ""


class EngineState(Record, frozen=True, kw_only=True):
    """How far the work on one issue is: saved at each boundary between two phases."""

    run_key: RunKey
    issue_url: Annotated[str, Meta(max_length=2048)]
    run_id: Annotated[str, Meta(pattern=r"\Ar-[0-9a-z]{8,40}\Z")]
    phase: Phase
    #: Of the settings that it began with.
    config_digest: Digest
    branch: Annotated[str, Meta(max_length=250)]
    base_commit: Annotated[str, Meta(pattern=r"\A[0-9a-f]{40,64}\Z")] | None
    #: Its worktree is there, whole.
    made: bool = False
    #: Times that a phase came to its end, by its name.
    tries: dict[str, int]
    #: Times that a phase sent the work back, by its name, and that it failed, by its
    #: name with `failed` behind it.
    setbacks: dict[str, int] = {}
    #: The last job of a phase, by its name: the next one may go on with its session.
    jobs: dict[str, str] = {}
    #: What the review asked for last.
    findings: Annotated[str, Meta(max_length=65536)] = ""
    #: Why it is blocked or failed.
    detail: Detail = ""
    effects: list[EffectDone] = []
    updated_at: Moment


class Assignment(Record, frozen=True, kw_only=True):
    """`issue.json`: what a worker is to do, as the issue said when it was admitted.

    The title and the body come from anybody: they are cleaned and cut when they are
    written (`assignment`), and quoted where they are shown.
    """

    run_key: RunKey
    issue_id: Id
    #: Where people find it; of a plan its file and its number.
    url: Annotated[str, Meta(min_length=1, max_length=2048)]
    title: Annotated[str, Meta(max_length=MAX_TITLE)]
    body: Annotated[str, Meta(max_length=MAX_BODY)]


class RepositoryRef(Struct, frozen=True, forbid_unknown_fields=True):
    id: Id
    owner: Name
    name: Name


class Invocation(Struct, frozen=True, forbid_unknown_fields=True):
    id: InvocationId
    started_at: Moment
    ended_at: Moment | None = None
    end_reason: EndReason | None = None


class ConfigSummary(Struct, frozen=True, forbid_unknown_fields=True):
    max_parallel: int
    poll_interval_seconds: float
    stop_grace_seconds: float
    digest: Digest


class AdmissionStatus(Struct, frozen=True, forbid_unknown_fields=True):
    status: Literal["open", "closed", "degraded"]
    reason: (
        Literal[
            "stop-requested", "interrupted", "snapshot-refused", "epic-not-admissible"
        ]
        | None
    ) = None


class SnapshotSummary(Struct, frozen=True, forbid_unknown_fields=True):
    digest: Digest
    observed_at: Moment
    children: int
    ready: int
    blocked: int
    closed: int
    unsupported: int
    owned: int
    held: int


class Scheduler(Record, frozen=True, kw_only=True):
    """`scheduler.json`: what people and the next start are told of a run."""

    repository: RepositoryRef
    epic: EpicRef
    invocation: Invocation
    config: ConfigSummary
    admission: AdmissionStatus
    last_snapshot: SnapshotSummary | None
    created_at: Moment
    updated_at: Moment


class StopRequest(Record, frozen=True, kw_only=True):
    """`stop.json`: what somebody asks of a run; of any one if it names none."""

    mode: Literal["drain", "now"]
    invocation_id: InvocationId | None = None
    requested_at: Moment | None = None


def encode(record: Record) -> bytes:
    """As it is written: readable, with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def checked(record: Record, limit: int = MAX_RECORD) -> bytes:
    """The same of a record that will be read again.

    Raises:
        StateError: it would not be.
    """
    try:
        data = encode(record)
    except ValueError as error:
        raise StateError(f"it cannot be written: {error}") from None
    decode(type(record), data, limit)
    return data


def decode(kind: type[R], data: bytes, limit: int = MAX_RECORD) -> R:
    """
    Raises:
        StateError: it is too large, no UTF-8, or no such record.
    """
    if len(data) > limit:
        raise StateError(f"it has more than {limit} bytes")
    try:
        json.loads(data, object_pairs_hook=_once, parse_constant=_refuse_constant)
        return msgspec.json.decode(data, type=kind, strict=True)
    except (ValueError, RecursionError, msgspec.DecodeError) as error:
        raise StateError(f"it is no {kind.__name__.lower()} record: {error}") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse_constant(text: str) -> object:
    raise ValueError(f"{text} is no number")


def assignment(
    run_key: RunKey, issue_id: int, url: str, title: str, body: str
) -> Assignment:
    """What a worker is told of an issue, whatever that says."""
    body = clean_lines(body.replace("\r\n", "\n"))
    return Assignment(
        run_key=run_key,
        issue_id=issue_id,
        url=url,
        title=bounded(clean(title).strip(), MAX_TITLE),
        body=bounded(body, MAX_BODY),
    )


def digest_of(data: bytes) -> str:
    """Of the exact bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def detail(text: str) -> str:
    """A text for a record: one harmless line without secrets, not too long."""
    text = text[: 8 * MAX_DETAIL].encode("utf-8", "replace").decode()
    line = " ".join(redact(clean(text)).split())
    return line if len(line) <= MAX_DETAIL else f"{line[: MAX_DETAIL - 1]}…"
