"""What comes next in the work on one issue, and what agents are asked and answer."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forge_actors.domain.epic.asking import (
    NOTES,
    OUTCOME,
    implement_prompt,
    outcome_of,
    review_prompt,
)
from forge_actors.domain.epic.phases import (
    LOOKING,
    MAX_FINDINGS,
    WORK,
    Outcome,
    Plan,
    after,
    effect_of,
    findings,
    is_settled,
    moment,
    not_published,
    published,
    said_outcome,
    with_effect,
)
from forge_actors.domain.epic.records import (
    MAX_ASSIGNMENT,
    MAX_BODY,
    MAX_DETAIL,
    MAX_TITLE,
    SETTLED,
    Assignment,
    EffectDone,
    EngineState,
    Phase,
    RunKey,
    assignment,
    decode,
    encode,
)

NOW, LATER = "2026-11-30T18:00:00Z", "2026-11-30T18:00:01Z"
ALL = Plan(frozenset(WORK), publishes=True)
KEY = RunKey(101, 12)
COMMIT = "a" * 40


def state(phase: Phase, **more: object) -> EngineState:
    made = EngineState(
        run_key=KEY,
        issue_url="https://github.com/octo/demo/issues/12",
        run_id="r-0123456789",
        phase=phase,
        config_digest=f"sha256:{'0' * 64}",
        branch="forge/epic-7/issue-12",
        base_commit=COMMIT,
        tries={},
        updated_at=NOW,
    )
    return structs.replace(made, **more)


#: phase, outcome, the plan, what comes next.
STEPS: list[tuple[str, str, Plan, Phase]] = [
    ("prepare", "passed", ALL, "implement"),
    ("implement", "passed", ALL, "check"),
    ("check", "passed", ALL, "review"),
    ("review", "passed", ALL, "publish"),
    ("review", "passed", Plan(frozenset(WORK)), "ready_for_merge"),
    ("implement", "passed", Plan(frozenset({"implement"})), "ready_for_merge"),
    ("implement", "passed", Plan(frozenset({"implement", "review"})), "review"),
    ("prepare", "passed", Plan(frozenset({"prepare", "check"})), "check"),
    ("check", "findings", ALL, "implement"),
    ("review", "findings", ALL, "implement"),
    ("check", "findings", Plan(frozenset(WORK), check_rounds=0), "failed"),
    ("review", "findings", Plan(frozenset(WORK), review_rounds=0), "failed"),
    ("prepare", "findings", ALL, "prepare"),
    ("implement", "findings", Plan(frozenset(WORK), failures=1), "failed"),
    *[(phase, "failed", ALL, phase) for phase in WORK],
    *[(p, "failed", Plan(frozenset(WORK), failures=1), "failed") for p in WORK],
    *[(phase, "blocked", ALL, "blocked") for phase in WORK],
    *[(phase, "done", ALL, "done") for phase in WORK],
    *[(p, "later", Plan(frozenset(WORK), failures=1), p) for p in WORK],
]


@pytest.mark.parametrize(("phase", "kind", "plan", "follows"), STEPS)
def test_each_outcome_of_a_phase_leads_to_one_next_phase(
    phase: str, kind: str, plan: Plan, follows: Phase
) -> None:
    outcome = Outcome(kind, "the words", "j-1")  # type: ignore[arg-type]
    told = after(state(phase), phase, outcome, plan, LATER)  # type: ignore[arg-type]
    assert told.phase == follows
    assert told.tries == {phase: 1}
    assert told.jobs == {phase: "j-1"}
    assert told.updated_at == LATER
    assert is_settled(told) == (follows in SETTLED)
    if follows in ("blocked", "failed"):
        assert told.detail.startswith(f"{phase}: ")
        assert "the words" in told.detail
    assert decode(EngineState, encode(told)) == told


def test_what_a_record_says_can_be_shown() -> None:
    told = after(
        state("check"),
        "check",
        Outcome("blocked", "a\x1b[31m red\n\u202eline \udc80 \x00"),
        ALL,
        LATER,
    )
    assert told.detail == "check: a red line ?"
    assert decode(EngineState, encode(told)) == told


def test_a_check_sends_the_work_back_as_often_as_it_may_and_then_it_has_failed() -> (
    None
):
    plan = Plan(frozenset(WORK), check_rounds=2)
    told = state("implement")
    for _ in range(2):
        told = after(told, "implement", Outcome("passed"), plan, LATER)
        told = after(told, "check", Outcome("findings", "1 failed"), plan, LATER)
        assert (told.phase, told.findings) == ("implement", "1 failed")
    told = after(told, "implement", Outcome("passed"), plan, LATER)
    assert told.findings == "1 failed", "the check has not yet said that it is mended"
    told = after(told, "check", Outcome("findings", "1 failed"), plan, LATER)
    assert told.phase == "failed"
    assert told.detail == "check: not good after 2 rounds of mending: 1 failed"
    assert told.tries == {"implement": 3, "check": 3}


def test_rounds_of_the_check_and_of_the_review_are_counted_apart() -> None:
    plan = Plan(frozenset(WORK), check_rounds=1, review_rounds=1)
    told = state("check")
    told = after(told, "check", Outcome("findings", "c"), plan, LATER)
    told = after(told, "implement", Outcome("passed"), plan, LATER)
    told = after(told, "check", Outcome("passed"), plan, LATER)
    assert told.findings == ""
    told = after(told, "review", Outcome("findings", "r"), plan, LATER)
    assert (told.phase, told.findings) == ("implement", "r")


def test_a_failure_of_a_phase_is_no_round_of_mending() -> None:
    plan = Plan(frozenset(WORK), check_rounds=1, failures=2)
    told = after(state("check"), "check", Outcome("failed", "no disk"), plan, LATER)
    assert (told.phase, told.detail) == ("check", "check: no disk")
    told = after(told, "check", Outcome("findings", "c"), plan, LATER)
    assert told.phase == "implement"


def test_what_has_to_be_seen_to_first_is_neither_a_failure_nor_a_round() -> None:
    told = state("check")
    for number in range(1, 20):
        told = after(told, "check", Outcome("later", "log in"), ALL, LATER)
        assert (told.phase, told.setbacks) == ("check", {})
        assert told.tries == {"check": number}, "each try has a number of its own"
    assert told.detail == "check: log in"


outcomes = st.builds(
    Outcome,
    st.sampled_from(["passed", "findings", "failed", "blocked", "done"]),
    st.text(max_size=40),
)
plans = st.builds(
    Plan,
    st.frozensets(st.sampled_from(WORK)).map(lambda some: some | {"implement"}),
    st.booleans(),
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(1, 4),
)


@settings(max_examples=50)
@given(plans, st.lists(outcomes, min_size=1, max_size=12))
def test_the_work_comes_to_rest_whatever_its_phases_come_to(
    plan: Plan, told: list[Outcome]
) -> None:
    now = state(plan.first())
    most = 4 * plan.failures + (plan.check_rounds + plan.review_rounds + 1) * 4
    steps = 0
    for outcome in itertools.cycle(told):
        if now.phase not in WORK:
            break
        phase = now.phase
        assert phase in plan.phases, "what is not set up is passed over"
        now = after(now, phase, outcome, plan, NOW)
        steps += 1
        assert len(now.detail) <= MAX_DETAIL
        assert decode(EngineState, encode(now)) == now
    assert now.phase not in WORK
    assert steps <= most
    assert sum(now.tries.values()) == steps
    if now.phase == "publish":
        assert plan.publishes


@settings(max_examples=8)
@given(st.text(max_size=40), st.sampled_from([1, MAX_FINDINGS]))
def test_findings_are_bounded_harmless_and_never_empty(text: str, times: int) -> None:
    for phase in LOOKING:
        found = findings(phase, text * times)
        assert 0 < len(found) <= MAX_FINDINGS
        assert not set(found) & set("\x1b\u202e\x00")


def test_of_long_findings_the_end_is_kept() -> None:
    assert findings("check", f"{'x' * MAX_FINDINGS}\n3 failed").endswith("3 failed")
    assert "ghp_" not in findings("check", f"token=ghp_{'a' * 36}")


def test_what_was_published_is_ready_and_what_may_not_be_takes_a_person() -> None:
    assert published(state("publish"), LATER).phase == "ready_for_merge"
    told = not_published(state("publish"), "rejected", LATER)
    assert (told.phase, told.detail) == ("blocked", "publish: rejected")


def test_the_time_of_a_state_does_not_go_back() -> None:
    assert moment(NOW, None) == NOW
    assert moment(LATER, state("check")) == LATER
    assert moment("2025-01-01T00:00:00Z", state("check")) == NOW


def test_of_each_effect_the_last_that_is_known_counts() -> None:
    begun = EffectDone("push", COMMIT, "begun")
    told = with_effect(state("publish"), begun, LATER)
    told = with_effect(told, EffectDone("pull_request", COMMIT, "begun"), LATER)
    told = with_effect(told, EffectDone("push", COMMIT, "done"), LATER)
    assert effect_of(told, "push") == EffectDone("push", COMMIT, "done")
    assert effect_of(told, "pull_request") is not None
    assert effect_of(state("publish"), "push") is None
    assert len(told.effects) == 2


@pytest.mark.parametrize(
    ("text", "kind", "notes"),
    [
        (f"All good.\n{OUTCOME}: passed", "passed", "All good."),
        (f"All good.\n\n**{OUTCOME}: Passed**\n", "passed", "All good."),
        (f"- one\n- two\n{OUTCOME}: findings", "findings", "- one\n- two"),
        (f"{OUTCOME}: passed\nno, wait\n{OUTCOME}: blocked", "blocked", None),
        (f"I end with {OUTCOME}: passed", None, ""),
        (f"{OUTCOME}: perhaps", None, ""),
        ("nothing", None, ""),
        ("", None, ""),
    ],
)
def test_an_answer_ends_with_a_line_that_says_what_it_came_to(
    text: str, kind: str | None, notes: str | None
) -> None:
    told = outcome_of({}, text)
    assert (None if told is None else told.kind) == kind
    if told is not None and notes is not None:
        assert told.text == notes


def test_what_a_phase_wrote_for_programs_counts_before_its_answer() -> None:
    text = f"fine\n{OUTCOME}: passed"
    outputs = {OUTCOME: "findings", NOTES: "mend this"}
    assert outcome_of(outputs, text) == Outcome("findings", "mend this")
    assert outcome_of({OUTCOME: "nonsense"}, text) is None
    assert said_outcome("failed", "") is None, "that it failed its status says"


def task(title: str = "A title", body: str = "Do it.") -> Assignment:
    return assignment(KEY, 9012, "https://github.com/octo/demo/issues/12", title, body)


@settings(max_examples=50)
@given(st.text(max_size=60), st.text(max_size=200))
def test_what_an_issue_says_is_harmless_and_whole_between_its_marks(
    title: str, body: str
) -> None:
    told = task(title, body)
    assert decode(Assignment, encode(told), MAX_ASSIGNMENT) == told
    for prompt in (
        implement_prompt(told, state("implement"), "k3y", again=False),
        review_prompt(told, state("review"), "k3y"),
    ):
        before, quoted, behind = prompt.replace("issue k3y>>>", "<<<issue k3y").split(
            "<<<issue k3y"
        )
        said = f"Title: {told.title}\n\n{told.body}".rstrip()
        assert quoted == f"\n{said}\n"
        assert not {"\x1b", "\x00", "\u202e"} & set(prompt)
        assert OUTCOME in behind
        assert "#12" in before


def test_a_huge_issue_is_cut() -> None:
    told = task("t" * 10_000, "\x01\U0001f600" * 200_000)
    assert (len(told.title), len(told.body)) == (MAX_TITLE, MAX_BODY)
    assert decode(Assignment, encode(told), MAX_ASSIGNMENT) == told


def test_an_agent_that_goes_on_in_its_session_is_told_only_what_is_new() -> None:
    found = state("implement", findings="2 tests fail")
    again = implement_prompt(task(), found, "k3y", again=True)
    assert "2 tests fail" in again
    assert "A title" not in again
    anew = implement_prompt(task(), found, "k3y", again=False)
    assert "A title" in anew
    assert "2 tests fail" in anew
    assert "findings" not in implement_prompt(
        task(), state("implement"), "k3y", again=True
    )
