"""The records of EPIC runs: what is not exactly one is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.records import (
    MAX_RECORD,
    EffectDone,
    Record,
    SnapshotSummary,
    StateRef,
    StopRequest,
    checked,
    decode,
    detail,
    encode,
)
from forge_actors.testing.epic.records import (
    DIGEST,
    made_binding,
    made_claim,
    made_closed,
    made_scheduler,
    made_state,
    made_worker,
    moment,
)

if TYPE_CHECKING:
    from collections.abc import Callable

EFFECT = EffectDone("push", "a" * 40, "begun", "to origin")
RECORDS: tuple[Record, ...] = (
    made_binding(12),
    structs.replace(
        made_claim(12, 2, supersedes=made_claim(12).ref, closed=made_closed()),
        worker=made_worker(),
    ),
    structs.replace(made_state(12, "blocked"), effects=[EFFECT], findings="é\n"),
    structs.replace(
        made_scheduler(),
        last_snapshot=SnapshotSummary(DIGEST, moment(1), 5, 1, 2, 1, 0, 1, 0),
    ),
    StopRequest(mode="now", invocation_id="i-00000001", requested_at=moment(2)),
)


def kind_of(record: Record) -> str:
    return type(record).__name__


@pytest.mark.parametrize("record", RECORDS, ids=kind_of)
def test_a_record_is_read_as_it_was_written(record: Record) -> None:
    data = checked(record)
    assert decode(type(record), data) == record
    assert data.endswith(b"}\n")
    assert json.loads(data)["schema"] == 1


def test_how_a_claim_is_written() -> None:
    """As earlier versions of the program have it on the disk."""
    before = made_claim(12, 2)
    ref = StateRef("present", DIGEST, "review", "r-00000001", moment(2))
    closed = made_closed("settled", "ready_for_merge")
    claim = made_claim(12, 3, state_ref=ref, supersedes=before.ref, closed=closed)
    claim = structs.replace(claim, worker=made_worker())
    assert _object(claim) == {
        "schema": 1,
        "claim_id": "c-00120003",
        "generation": 3,
        "kind": "resume",
        "run_key": {"repository_id": 101, "issue_number": 12},
        "issue_id": 9012,
        "epic": {"number": 7, "id": 9007},
        "invocation_id": "i-00000003",
        "admission": {
            "snapshot_digest": DIGEST,
            "node_digest": DIGEST,
            "observed_at": "2026-11-29T20:00:00Z",
        },
        "state_ref": {
            "kind": "present",
            "digest": DIGEST,
            "phase": "review",
            "run_id": "r-00000001",
            "updated_at": "2026-11-30T00:00:02Z",
        },
        "supersedes": {"claim_id": "c-00120002", "generation": 2},
        "opened_at": "2026-11-30T00:00:03Z",
        "worker": {
            "pid": 4242,
            "start_time": 987654,
            "recorded_at": "2026-11-30T00:00:50Z",
            "log": "/octo/demo/workers/1.log",
        },
        "closed": {
            "classification": "settled",
            "settlement": "ready_for_merge",
            "exit_status": 0,
            "detail": "it ended",
            "at": "2026-11-30T00:01:40Z",
        },
    }


def test_how_a_run_is_told_of() -> None:
    assert _object(RECORDS[3]) == {
        "schema": 1,
        "repository": {"id": 101, "owner": "octo", "name": "demo"},
        "epic": {"number": 7, "id": 9007},
        "invocation": {
            "id": "i-00000001",
            "started_at": "2026-11-30T00:00:00Z",
            "ended_at": None,
            "end_reason": None,
        },
        "config": {
            "max_parallel": 3,
            "poll_interval_seconds": 60.0,
            "stop_grace_seconds": 30.0,
            "digest": DIGEST,
        },
        "admission": {"status": "open", "reason": None},
        "last_snapshot": {
            "digest": DIGEST,
            "observed_at": "2026-11-30T00:00:01Z",
            "children": 5,
            "ready": 1,
            "blocked": 2,
            "closed": 1,
            "unsupported": 0,
            "owned": 1,
            "held": 0,
        },
        "created_at": "2026-11-30T00:00:00Z",
        "updated_at": "2026-11-30T00:00:00Z",
    }


@pytest.mark.parametrize("record", RECORDS, ids=kind_of)
def test_a_record_that_was_cut_anywhere_is_refused(record: Record) -> None:
    data = checked(record)
    for size in range(len(data) - 1):  # all but the newline at its end
        with pytest.raises(StateError):
            decode(type(record), data[:size])


@pytest.mark.parametrize("record", RECORDS, ids=kind_of)
def test_a_record_with_any_bit_changed_is_refused_or_another_one(
    record: Record,
) -> None:
    kind, data = type(record), bytearray(checked(record))
    read = 0
    for place in range(len(data)):
        for bit in range(8):
            data[place] ^= 1 << bit
            try:
                found = decode(kind, bytes(data))
            except StateError:
                pass
            else:
                read += 1
                assert decode(kind, checked(found)) == found
            data[place] ^= 1 << bit
    assert 0 < read < 2 * len(data)


#: Whose keys are names of phases.
TABLES = ("tries", "setbacks", "jobs")


def _object(record: Record) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(encode(record))
    return found


@pytest.mark.parametrize("record", RECORDS, ids=kind_of)
def test_unknown_missing_and_repeated_keys_are_refused(record: Record) -> None:
    whole = _object(record)
    with pytest.raises(StateError):
        decode(type(record), json.dumps({**whole, "more": 1}).encode())
    for key, value in whole.items():
        twice = f'{json.dumps(whole)[:-1]}, "{key}": {json.dumps(value)}}}'
        with pytest.raises(StateError, match="twice"):
            decode(type(record), twice.encode())
        if isinstance(value, dict) and key not in TABLES:
            deeper = {**whole, key: {**value, "more": 1}}
            with pytest.raises(StateError):
                decode(type(record), json.dumps(deeper).encode())


def test_what_is_needed_must_be_there() -> None:
    whole = _object(RECORDS[1])
    for key in set(whole) - {"schema", "worker", "closed"}:
        less = {name: value for name, value in whole.items() if name != key}
        with pytest.raises(StateError):
            decode(type(RECORDS[1]), json.dumps(less).encode())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", 2),
        ("schema", 0),
        ("schema", True),
        ("schema", 1.0),
        ("schema", "1"),
        ("schema", None),
        ("generation", True),
        ("generation", 0),
        ("generation", -1),
        ("generation", 2**31),
        ("generation", 10**400),
        ("issue_id", 2**53),
        ("claim_id", "c-00000001\n"),
        ("claim_id", "c-../../etc"),
        ("kind", "restart"),
        ("opened_at", "2026-11-30T00:00:00+00:00"),
        ("opened_at", "2026-11-30T00:00:00Z\n"),
        ("opened_at", "٢٠٢٦-11-30T00:00:00Z"),
        ("opened_at", 1),
        ("supersedes", []),
        ("closed", {"classification": "lost"}),
    ],
)
def test_a_value_of_another_kind_is_refused(key: str, value: Any) -> None:
    claim = RECORDS[1]
    with pytest.raises(StateError):
        decode(type(claim), json.dumps({**_object(claim), key: value}).encode())


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data + b"{}",
        lambda data: b"[" + data + b"]",
        lambda data: b"null",
        lambda data: data.decode().encode("utf-16"),
        lambda data: data.replace(b"drain", b"\xff"),
        lambda data: data.replace(b"null", b"NaN", 1),
        lambda data: data.replace(b"null", b"Infinity", 1),
        lambda data: data.replace(b"null", b"9" * 5000, 1),
        lambda data: data.replace(b"null", b"[" * 100_000, 1),
        lambda data: data + b" " * MAX_RECORD,
    ],
)
def test_what_is_no_such_text_is_refused(change: Callable[[bytes], bytes]) -> None:
    with pytest.raises(StateError):
        decode(StopRequest, change(encode(StopRequest(mode="drain"))))


def test_what_would_not_be_read_again_is_not_written() -> None:
    for wrong in (
        structs.replace(made_claim(12), generation=0),
        structs.replace(made_claim(12), closed=made_closed("lost")),
        structs.replace(made_state(12), detail="x" * 501),
        structs.replace(made_state(12), findings="\udc80"),
    ):
        with pytest.raises(StateError):
            checked(wrong)


def test_a_detail_is_one_short_line_without_secrets() -> None:
    assert detail("one\ntwo\t three\r\n") == "one two three"
    assert detail(f"token ghp_{'a' * 36}!") == "token [redacted]!"
    assert (
        detail("https://x:hunter2hunter2@host/a") != "https://x:hunter2hunter2@host/a"
    )
    assert detail("\udc80") == "?"
    long = detail("é" * 1_000_000)
    assert len(long) == 500
    assert long.endswith("é…")
