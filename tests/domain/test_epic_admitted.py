"""What a worker has to find on record before it begins."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from forge_actors.domain.epic.admitted import (
    Admitted,
    NotAdmitted,
    check_claim,
    check_state,
)
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.records import (
    ABSENT,
    Admission,
    Binding,
    Claim,
    ClaimRef,
    Closed,
    EngineState,
    EpicRef,
    RunKey,
    StateRef,
    digest_of,
    encode,
)

NOW = "2026-11-30T18:00:00Z"
NONE, OTHER = f"sha256:{'0' * 64}", f"sha256:{'1' * 64}"
KEY, EPIC = RunKey(101, 12), EpicRef(7, 9007)
GIVEN = Admitted(7, 12, "c-0123456789", 2, "i-0123456789")
BINDING = Binding(
    run_key=KEY,
    issue_id=9012,
    owner="octo",
    name="demo",
    epic=EPIC,
    worktree="/w",
    created_at=NOW,
)
CLAIM = Claim(
    claim_id="c-0123456789",
    generation=2,
    kind="start",
    run_key=KEY,
    issue_id=9012,
    epic=EPIC,
    invocation_id="i-0123456789",
    admission=Admission(NONE, NONE, NOW),
    state_ref=ABSENT,
    supersedes=None,
    opened_at=NOW,
)
FIRST = structs.replace(CLAIM, claim_id="c-aaaaaaaaaa", generation=1)
STATE = EngineState(
    run_key=KEY,
    issue_url="https://github.com/octo/demo/issues/12",
    run_id="r-0123456789",
    phase="check",
    config_digest=NONE,
    branch="b",
    base_commit=None,
    tries={},
    updated_at=NOW,
)
SAVED = encode(STATE)
RESUME = structs.replace(
    CLAIM,
    kind="resume",
    state_ref=StateRef("present", digest_of(SAVED), "check", STATE.run_id),
)


def test_a_worker_that_is_the_one_of_the_last_claim_may_begin() -> None:
    assert check_claim(GIVEN, BINDING, [FIRST, CLAIM]) == CLAIM


CLOSED = Closed("abandoned", None, None, "", NOW)
CLAIMS: list[dict[str, Any]] = [
    {"claim_id": "c-bbbbbbbbbb"},
    {"generation": 3},
    {"run_key": RunKey(101, 13)},
    {"run_key": RunKey(102, 12)},
    {"issue_id": 9013},
    {"epic": EpicRef(8, 9007)},
    {"epic": EpicRef(7, 9008)},
    {"invocation_id": "i-bbbbbbbbbb"},
    {"closed": CLOSED},
]
BINDINGS: list[dict[str, Any]] = [
    {"run_key": RunKey(101, 13)},
    {"run_key": RunKey(102, 12)},
    {"issue_id": 9013},
    {"epic": EpicRef(8, 9007)},
    {"epic": EpicRef(7, 9008)},
]


@pytest.mark.parametrize("changed", CLAIMS, ids=str)
def test_each_field_of_the_claim_has_to_be_its_own(changed: dict[str, Any]) -> None:
    with pytest.raises(NotAdmitted):
        check_claim(GIVEN, BINDING, [FIRST, structs.replace(CLAIM, **changed)])


@pytest.mark.parametrize("changed", BINDINGS, ids=str)
def test_each_field_of_the_binding_has_to_be_its_own(changed: dict[str, Any]) -> None:
    with pytest.raises(NotAdmitted):
        check_claim(GIVEN, structs.replace(BINDING, **changed), [FIRST, CLAIM])


def test_without_a_binding_or_a_claim_or_with_a_later_one_it_may_not_begin() -> None:
    later = structs.replace(
        CLAIM,
        claim_id="c-cccccccccc",
        generation=3,
        supersedes=ClaimRef(CLAIM.claim_id, 2),
    )
    for binding, claims in (
        (None, [FIRST, CLAIM]),
        (BINDING, []),
        (BINDING, [FIRST]),
        (BINDING, [FIRST, CLAIM, later]),
    ):
        with pytest.raises(NotAdmitted):
            check_claim(GIVEN, binding, claims)


def test_work_begins_only_without_a_state_and_goes_on_only_from_its_own() -> None:
    assert check_state(CLAIM, None, NONE, accept=False) is None
    assert check_state(RESUME, SAVED, NONE, accept=False) == STATE
    changed = SAVED.replace(b"18:00:00", b"18:00:01")
    for claim, saved in ((CLAIM, SAVED), (RESUME, None), (RESUME, changed)):
        with pytest.raises(NotAdmitted):
            check_state(claim, saved, NONE, accept=True)


def test_other_settings_have_to_be_accepted() -> None:
    with pytest.raises(NotAdmitted, match="--accept-config-change"):
        check_state(RESUME, SAVED, OTHER, accept=False)
    assert check_state(RESUME, SAVED, OTHER, accept=True) == STATE


def test_a_state_of_another_issue_or_that_is_none_is_refused() -> None:
    other = encode(structs.replace(STATE, run_key=RunKey(101, 13)))
    ref = StateRef("present", digest_of(other), "check", STATE.run_id)
    with pytest.raises(NotAdmitted):
        check_state(structs.replace(RESUME, state_ref=ref), other, NONE, accept=False)
    ref = StateRef("present", digest_of(b"{}"), "check", STATE.run_id)
    with pytest.raises(StateError):
        check_state(structs.replace(RESUME, state_ref=ref), b"{}", NONE, accept=False)
