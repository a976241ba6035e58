"""Claims of one issue, however runs end: one that counts, and none is ever lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from msgspec import structs

from forge_actors.domain.epic import places
from forge_actors.domain.epic.claims import by_state, opened
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.namespace import Classification, Namespace, classify
from forge_actors.domain.epic.reconciling import reconcile
from forge_actors.domain.epic.records import ABSENT, SETTLED
from forge_actors.testing.epic.locks import FakeLocks
from forge_actors.testing.epic.namespaces import MemoryNamespaces
from forge_actors.testing.epic.records import (
    ADMISSION,
    EPIC,
    EXPECTED,
    made_binding,
    made_claim,
    made_closed,
    made_state,
    made_worker,
    moment,
)
from forge_actors.testing.epic.root import Crash
from tests.examples import examples

if TYPE_CHECKING:
    from forge_actors.domain.epic.records import Claim, Phase
    from forge_actors.testing.epic.locks import FakeRunLock

ISSUE = 12
PHASES = ("prepare", "implement", "check", "review", *SETTLED)


def new_claim(namespace: Namespace, found: Classification, **changed: Any) -> Claim:
    facts: dict[str, Any] = {
        "claim_id": "c-00000001",
        "issue_id": 9012,
        "epic": EPIC,
        "invocation_id": "i-00000001",
        "admission": ADMISSION,
        "now": moment(1),
    }
    expected = changed.pop("expected", EXPECTED)
    return opened(namespace, found, expected, **{**facts, **changed})


def test_a_first_claim_starts() -> None:
    for found in (Classification("absent"), Classification("fresh")):
        claim = new_claim(Namespace(ISSUE), found)
        assert (claim.kind, claim.generation, claim.state_ref) == ("start", 1, ABSENT)
        assert claim.supersedes is None
        assert claim.admission == ADMISSION


def test_a_claim_goes_on_from_what_was_found() -> None:
    earlier = made_claim(ISSUE, 4)
    ref = structs.replace(ABSENT, kind="present", run_id="r-00000001")
    found = Classification("resumable", "", earlier, None, ref)
    claim = new_claim(Namespace(ISSUE, claims=(earlier,)), found)
    assert (claim.kind, claim.generation, claim.state_ref) == ("resume", 5, ref)
    assert claim.supersedes == earlier.ref


def test_what_is_settled_uncertain_or_another_issue_is_not_claimed() -> None:
    for kind in ("settled", "uncertain"):
        with pytest.raises(StateError, match=kind):
            new_claim(Namespace(ISSUE), Classification(kind))
    known = structs.replace(EXPECTED, issue_ids={ISSUE: 1})
    with pytest.raises(StateError, match="9012"):
        new_claim(Namespace(ISSUE), Classification("fresh"), expected=known)


class Runs(RuleBasedStateMachine):
    """Runs of an EPIC with one issue, that end in every way."""

    def __init__(self) -> None:
        super().__init__()
        self.namespaces = MemoryNamespaces()
        self.locks = FakeLocks()
        self.second = 0
        #: The claim that counts, and whether its worker lives.
        self.open: Claim | None = None
        self.works = False
        #: Claims that are closed, by the bytes of their files.
        self.closed: dict[int, bytes] = {}
        self.phase: Phase | None = None
        self.bound: bytes | None = None

    def _now(self) -> str:
        self.second += 1
        return moment(self.second)

    def _found(self) -> tuple[Namespace, Classification]:
        namespace = self.namespaces.look(ISSUE)
        return namespace, classify(namespace, EXPECTED)

    def _admit(self, lock: FakeRunLock) -> None:
        namespace = self.namespaces.read(lock, ISSUE)
        found = classify(namespace, EXPECTED)
        if namespace.binding is None:
            self.namespaces.bind(lock, made_binding(ISSUE))
        claim = new_claim(
            namespace,
            found,
            claim_id=f"c-{self.second:08}",
            invocation_id=f"i-{self.second:08}",
            now=self._now(),
        )
        self.namespaces.open_claim(lock, claim, found.open_claim)
        self.namespaces.note_worker(lock, claim, made_worker())

    def _cut(self, write: int | None, *, crash: bool) -> bool:
        """Begin an issue, up to a write; whether its worker began."""
        if write is not None:
            faults = self.namespaces.faults
            (faults.crash_after if crash else faults.fail_at)(write)
        lock = self.locks.take_run(ISSUE)
        try:
            self._admit(lock)
        except (Crash, StateError):
            return False
        finally:
            lock.close()
            self.namespaces = self.namespaces.again()
        return True

    @property
    def _may_begin(self) -> bool:
        return not self.works and self.phase not in SETTLED

    @initialize()
    def nothing(self) -> None:
        assert self._found()[1].kind == "absent"

    @precondition(lambda self: self._may_begin)
    @rule(write=st.none() | st.integers(1, 5), crash=st.booleans())
    def begin(self, write: int | None, crash: bool) -> None:
        before = self._found()[0]
        self.works = self._cut(write, crash=crash)
        namespace, found = self._found()
        new = namespace.claims[len(before.claims) :]
        assert len(new) <= 1
        if new:
            assert new[0].kind == ("start" if self.phase is None else "resume")
            assert new[0].supersedes == (self.open and self.open.ref)
            self.open = structs.replace(new[0], worker=None)
        assert not self.works or new
        assert found.open_claim == (new[-1] if new else before.open_claim)

    @precondition(lambda self: self.works)
    @rule(phase=st.sampled_from(PHASES))
    def save(self, phase: Phase) -> None:
        self.phase = phase
        self._now()
        self.namespaces.save(made_state(ISSUE, phase, second=self.second))

    @precondition(lambda self: self.works)
    @rule(status=st.sampled_from([0, 1, -9, 130]), fails=st.booleans())
    def finalize(self, status: int, fails: bool) -> None:
        self.works = False
        lock = self.locks.take_run(ISSUE)
        found = classify(self.namespaces.read(lock, ISSUE), EXPECTED)
        closing = by_state(found, exit_status=status, told="ended", now=self._now())
        assert closing is not None
        assert self.open is not None
        if fails:
            self.namespaces.faults.fail_at(1)
            with pytest.raises(StateError):
                self.namespaces.close_claim(lock, self.open, closing)
        else:
            closed = self.namespaces.close_claim(lock, self.open, closing)
            wanted = {None: "abandoned"}.get(self.phase, "resumable")
            wanted = "settled" if self.phase in SETTLED else wanted
            assert closed.closed is not None
            assert closed.closed.classification == wanted
            assert closed.closed.exit_status == status
            with pytest.raises(StateError):
                self.namespaces.close_claim(lock, self.open, closing)
            self.open = None
        lock.close()

    @rule()
    def close_another(self) -> None:
        lock = self.locks.take_run(ISSUE)
        other = made_claim(ISSUE, max(1, len(self.closed)), claim_id="c-unheard00")
        with pytest.raises(StateError):
            self.namespaces.close_claim(lock, other, made_closed())
        lock.close()

    @precondition(lambda self: self.works)
    @rule()
    def the_run_is_killed(self) -> None:
        """Its worker too, and so the claim is left open."""
        self.works = False

    @precondition(lambda self: not self.works)
    @rule(fails=st.booleans())
    def look_at_what_is_left(self, fails: bool) -> None:
        if fails:
            self.namespaces.faults.fail_at(1)
        done = reconcile(self.namespaces, self.locks, EPIC, EXPECTED, now=self._now())
        self.namespaces = self.namespaces.again()
        assert done.admissible
        if any(report.fact == "uncertain" for report in done.reports):
            assert fails
            return
        namespace, found = self._found()
        assert namespace.outrun == ()
        if self.phase is None or self.phase in SETTLED:
            assert found.open_claim is None
            self.open = None
        assert (found.open_claim and found.open_claim.ref) == (
            self.open and self.open.ref
        )

    @invariant()
    def nothing_is_uncertain(self) -> None:
        namespace, found = self._found()
        if self.phase is None:
            assert found.kind in ("absent", "fresh"), found.detail
        elif self.phase in SETTLED:
            assert (found.kind, found.settlement) == ("settled", self.phase)
        else:
            assert found.kind == "resumable", found.detail
            assert found.state_ref == namespace.state_ref

    @invariant()
    def generations_have_no_gap(self) -> None:
        claims = self._found()[0].claims
        assert [each.generation for each in claims] == [*range(1, len(claims) + 1)]

    @invariant()
    def one_claim_counts(self) -> None:
        namespace, found = self._found()
        assert (found.open_claim and found.open_claim.ref) == (
            self.open and self.open.ref
        )
        assert not self.works or self.open is not None
        assert len(namespace.outrun) <= 1

    @invariant()
    def what_is_closed_or_bound_stays_as_it_is(self) -> None:
        files = self.namespaces.files.files
        for claim in self._found()[0].claims:
            if claim.closed is not None:
                data = files[places.claim(ISSUE, claim.generation)]
                assert self.closed.setdefault(claim.generation, data) == data
        binding = files.get(places.binding(ISSUE))
        assert self.bound in (None, binding)
        self.bound = binding
        assert binding is not None or not self._found()[0].claims


Runs.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=25, deadline=None
)
test_runs_of_one_issue = Runs.TestCase
