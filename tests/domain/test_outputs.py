"""Outputs: what counts of what a job wrote, and how the rest is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.harmless import clean_lines
from forge_actors.domain.jobs import JobSpec
from forge_actors.domain.launch import Receipt
from forge_actors.domain.outputs import (
    MAX_NAMES,
    MAX_TOLD,
    Outputs,
    ToldOutputs,
    check_names,
    outputs_of,
    parse,
    shown_outputs,
)
from forge_actors.domain.verifying import Verify, check_next
from tests.domain.making import make_job

SPEC = JobSpec(argv=("make",), cwd="/app", outputs=("A", "B"))
TOKEN = "ghp_" + "a1B2" * 9


def ended(told: ToldOutputs | None) -> Receipt:
    return Receipt(
        job="j", attempt=1, fence=1, ending="exit", ended_at=1.0, outputs=told
    )


def test_values_are_lines_and_the_last_of_a_name_counts() -> None:
    found = parse(["A", "B"], "A=1\n\nB= two = 2 \nA=<<x\n")
    assert found == Outputs({"A": "<<x", "B": " two = 2 "})


def test_a_value_of_several_lines_ends_at_its_word() -> None:
    text = "A<<END\none\n\nB=no\n\tEND\nEND\nB<<=\n=\n"
    assert parse(["A", "B"], text) == Outputs({"A": "one\n\nB=no\n\tEND", "B": ""})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("A=1\nnonsense", "line 2 is neither NAME=value nor NAME<<WORD"),
        ("A=1\n 9X=2", "line 2 is neither NAME=value nor NAME<<WORD"),
        ("A=1\nÄ=2", "line 2 is neither NAME=value nor NAME<<WORD"),
        ("A=1\nC=2\nC=3", "C was not declared"),
        ("A=1\nB=\x1b[31m", "B has a control character; B is missing"),
        ("A=1\nB=2\r\n", "B has a control character; B is missing"),
        ("A=1\nB=\u202eevil", "B has a control character; B is missing"),
        ("A=1\nB<<\n", "line 2 names no word behind << that ends the value"),
        ("A=1\nB<<X\nA=2\n", "the value that begins in line 2 does not end"),
        ("A=1", "B is missing"),
    ],
)
def test_what_is_wrong_is_left_out_and_said(text: str, problem: str) -> None:
    found = parse(["A", "B"], text)
    assert found.values == {"A": "1"}
    assert found.problem is not None
    assert found.problem.startswith(problem)


def test_problems_are_bounded() -> None:
    found = parse([], "\n".join(f"{'N' * 500}{n}=1" for n in range(99)))
    assert found.problem is not None
    assert found.problem.count("was not declared") <= MAX_TOLD
    assert len(found.problem) < 1000


@given(st.text(), st.lists(st.sampled_from("ABCD"), max_size=3))
def test_nothing_but_declared_names_and_harmless_values_comes_through(
    text: str, names: list[str]
) -> None:
    found = parse(names, text)
    assert found.values.keys() <= set(names)
    assert all(clean_lines(value) == value for value in found.values.values())
    if found.problem is None:
        assert found.values.keys() == set(names)


@given(st.dictionaries(st.sampled_from("ABCDE"), st.text(st.characters(codec="ascii"))))
def test_what_was_written_line_by_line_is_read_as_it_was(
    values: dict[str, str],
) -> None:
    values = {name: clean_lines(text) for name, text in values.items()}
    word, lines = "END", "\n".join(values.values()).split("\n")
    while word in lines:
        word += "_"
    text = "".join(f"{n}<<{word}\n{value}\n{word}\n" for n, value in values.items())
    assert parse(list(values), text) == Outputs(values)


@pytest.mark.parametrize("name", ["", "1A", "a-b", "A" * 65, "A\n", "é", "A B"])
def test_a_name_that_cannot_be_one_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot name an output"):
        check_names([name])


def test_names_are_bounded_and_each_counts_once() -> None:
    names = [f"N{n}" for n in range(MAX_NAMES)]
    assert check_names([*names, "N0"]) == tuple(names)
    with pytest.raises(InvalidInput, match="more than 64"):
        check_names([*names, "ONE_MORE"])


def test_outputs_are_those_of_the_receipt() -> None:
    told = ToldOutputs("A=1\nB=2\n")
    assert outputs_of(SPEC, ended(told)) == Outputs({"A": "1", "B": "2"})
    none = structs.replace(SPEC, outputs=())
    assert outputs_of(none, ended(told)) == Outputs({})
    lost = Outputs({}, "nothing is known of its outputs: it did not run to its end")
    assert outputs_of(SPEC, None) == outputs_of(SPEC, ended(None)) == lost
    wrong = outputs_of(SPEC, ended(ToldOutputs(error="their file is not UTF-8")))
    assert wrong == Outputs({}, "its outputs do not count: their file is not UTF-8")


def test_those_of_work_that_was_checked_are_those_of_the_work() -> None:
    verify = Verify("true", outputs=ToldOutputs("A=1\nB=2"))
    spec = structs.replace(SPEC, verify=verify)
    assert outputs_of(spec, ended(None)) == Outputs({"A": "1", "B": "2"})
    newer = ToldOutputs("A=3\nB=4")
    assert outputs_of(spec, ended(newer)) == Outputs({"A": "3", "B": "4"})


def test_those_of_work_are_kept_while_it_is_checked() -> None:
    job = make_job("a", kind="agent-run")
    job.verify = Verify("make test")
    told = ToldOutputs("A=1\nB=2")
    assert check_next(job, ended(told)).outputs == told


def test_readers_see_no_secret_and_nothing_before_the_end() -> None:
    receipt = ended(ToldOutputs(f"A={TOKEN}\nB=2"))
    assert outputs_of(SPEC, receipt).values["A"] == TOKEN
    shown = shown_outputs(SPEC, receipt, ended=True)
    assert shown is not None
    assert TOKEN not in shown.values["A"]
    assert shown.values["B"] == "2"
    assert shown_outputs(SPEC, receipt, ended=False) == Outputs({})
    none = structs.replace(SPEC, outputs=())
    assert shown_outputs(none, receipt, ended=True) is None
