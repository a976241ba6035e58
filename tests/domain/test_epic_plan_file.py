"""Plans as people write them, and what is said of those that are wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.epic.plan_file import (
    EPIC_NUMBER,
    MAX_ISSUES,
    Plan,
    PlanFile,
    PlanIssue,
    children_of,
    epic_of,
    is_issue_file,
    read_folder,
    read_plan,
    repository_of,
)
from forge_actors.domain.epic.records import RepositoryRef
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.toml import line_of

GOOD = '''title = "The importer"

[[issue]]
number = 2
title = "Load"
blocked_by = [1]

[[issue]] # a comment with [[issue]] in it
number = 1
title = "Parse"
body = """
[[issue]]
number = 9
"""
state = "closed"
reason = "not-planned"
'''


def plan(text: str) -> Plan:
    return read_plan(PlanFile("plan.toml", text))


def folder(**files: str) -> Plan:
    return read_folder(
        [PlanFile(name.replace("__", "."), text) for name, text in files.items()], "it"
    )


def test_a_plan_is_one_file_in_its_own_order() -> None:
    assert plan(GOOD) == Plan(
        "The importer",
        EPIC_NUMBER,
        (
            PlanIssue(2, "Load", blocked_by=(1,)),
            PlanIssue(
                *(1, "Parse", "[[issue]]\nnumber = 9\n"),
                state="closed",
                reason="not-planned",
            ),
        ),
    )
    assert plan("number = 5") == Plan(None, 5, ())


def test_a_plan_may_be_a_folder_with_a_file_for_each_issue() -> None:
    found = folder(
        epic__toml='title = "The importer"\nnumber = 7',
        **{
            "10-last__md": "+++\nblocked_by = [2]\n+++\n\n# Last #\n\nDo it.\n",
            "02-load__toml": 'title = "Load"\nbody = "Now."',
            "first__md": '+++\nnumber = 1\ntitle = "First"\n+++\n# Parse\n',
            "003__md": "\n# Only a text\n",
        },
    )
    assert (found.title, found.number) == ("The importer", 7)
    assert found.issues == (
        PlanIssue(1, "First", "# Parse\n"),
        PlanIssue(2, "Load", "Now."),
        PlanIssue(3, "Only a text"),
        PlanIssue(10, "Last", "Do it.\n", (2,)),
    )


@pytest.mark.parametrize(
    ("name", "read"),
    [
        *(("1.toml", True), ("a.md", True), ("epic.toml", True), ("README.md", False)),
        *((".1.toml", False), ("_1.md", False), ("1.txt", False), ("1.toml~", False)),
    ],
)
def test_a_file_that_is_no_issue_is_told_by_its_name(name: str, read: bool) -> None:
    assert is_issue_file(name) == read


ONE = '[[issue]]\nnumber = 1\ntitle = "One"\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1", "plan.toml:1: x: is not a known field"),
        ("\nissues = []", "plan.toml:2: issues: is not a known field; did you mean"),
        ("issue = 3", "plan.toml:1: issue: expected `array`, got `int`"),
        ("title = ''", "plan.toml:1: title: expected `str` of length >= 1"),
        ("number = 0", "plan.toml:1: number: expected `int` >= 1"),
        ("[[issue]]", "plan.toml:1: issue[0]: object missing required field"),
        (f"{ONE}\n[[issue]]\nnumber = 2", "plan.toml:5: issue 2: object missing"),
        (f"{ONE}stat = 1", "plan.toml:4: issue 1: stat: is not a known field; did you"),
        (
            f"{ONE}state = 'done'",
            "plan.toml:4: issue 1: state: 'done' is unknown (allowed: open, closed)",
        ),
        (f"{ONE}reason = 'completed'", "plan.toml:4: issue 1: reason: is of an issue"),
        (
            f"{ONE}blocked_by = [2]",
            "plan.toml:4: issue 1: blocked_by: there is no issu",
        ),
        (f"{ONE}blocked_by = ['1']", "plan.toml:4: issue 1: blocked_by[0]: expected"),
        (f"{ONE}{ONE}", "plan.toml:5: issue 1: number: is there twice, first in plan"),
        (
            ONE.replace("1", "1000"),
            "plan.toml:2: issue 1000: number: is that of the EP",
        ),
        (
            ONE.replace("1", "true"),
            "plan.toml:2: issue[0]: number: expected `int`, got",
        ),
        (
            "title = ",
            "plan.toml: is no valid TOML: Invalid value (at end of document)",
        ),
        (f"a{'.a' * 40} = 1", "plan.toml: has a key of more than 32 dotted parts"),
        ("[[issue]]\n" * (MAX_ISSUES + 1), "plan.toml:1: issue[0]: object missing"),
    ],
)
def test_what_is_wrong_with_a_plan_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        plan(text)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"a__toml": "title = 'A'"}, "a.toml: object missing required field `number`"),
        (
            {"1__md": "no heading"},
            "1.md: issue 1: object missing required field `title`",
        ),
        ({"1__md": "+++\nx = 1\n"}, "1.md:1: there is no second +++"),
        ({"1__md": "+++\nbody = ''\n+++\n"}, "1.md:2: body: is what stands below the"),
        ({"1__md": "+++\n\nx = 1\n+++\n# A"}, "1.md:3: issue 1: x: is not a known"),
        (
            {"1__md": "+++\n\nx = y\n+++\n"},
            "1.md: is no valid TOML: Invalid value (at line 3, column 5)",
        ),
        ({"epic__toml": "issue = []"}, "epic.toml:1: issue: is not a known field"),
        (
            {"1-a__md": "# A", "1-b__md": "# B"},
            "1-b.md: issue 1: number: is there twice, first in 1-a.md",
        ),
        (
            {"1__md": "+++\nblocked_by = [2]\n+++\n# A"},
            "1.md:2: issue 1: blocked_by: there is no issue 2 in this plan",
        ),
    ],
)
def test_what_is_wrong_with_a_folder_is_told_with_its_file(
    files: dict[str, str], told: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        folder(**files)
    assert str(caught.value).startswith(told)


def test_no_more_issues_are_read_than_one_run_can_oversee() -> None:
    many = [f'[[issue]]\nnumber = {n}\ntitle = "x"' for n in range(1, MAX_ISSUES + 2)]
    assert len(plan("\n".join(many[:-1])).issues) == MAX_ISSUES
    with pytest.raises(InvalidInput, match=f"has more than {MAX_ISSUES} issues"):
        plan("number = 5000\n" + "\n".join(many))


def test_ids_are_those_of_the_plan_and_its_numbers() -> None:
    found = plan(GOOD)
    one, other = "plans/importer.toml", "plans/other.toml"
    children = children_of(found, one)
    assert children_of(found, one) == children
    ids = {child.id for child in (*children, *children_of(found, other))}
    ids |= {epic_of(found, key).id for key in (one, other)}
    ids |= {repository_of(key).id for key in (one, other)}
    assert len(ids) == 8
    assert all(0 < each < 2**48 for each in ids)
    epic = epic_of(found, one)
    assert {(each.parent, each.parent_id) for each in children} == {(epic.at, epic.id)}
    assert children[0].blockers[0].id == children[1].id
    assert children[1].reason == "not_planned"


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("plans/Importer v2.toml", "importer-v2"),
        ("plan/", "plan"),
        ("/tmp/ü", "plan"),
        ("..toml", "plan"),
        ("a" * 300, "a" * 100),
        ("\udcff.toml", "plan"),
    ],
)
def test_a_plan_is_kept_apart_under_a_harmless_name(key: str, name: str) -> None:
    home = repository_of(key)
    assert home.place.name == name
    RepositoryRef(home.id, home.place.owner, home.place.name)
    plans, own = home.folder
    assert plans == "plans"
    assert own.startswith(f"{name[:40]}-")
    assert own != repository_of(f"other/{key}").folder[1]


def test_a_closed_issue_waits_for_nothing_and_names_are_taken_once() -> None:
    text = f"{ONE}state = 'closed'\nblocked_by = [2]\n"
    text += '[[issue]]\nnumber = 2\ntitle = "Two"\nblocked_by = [1, 1]\n'
    closed, waiting = children_of(plan(text), "k")
    assert (closed.blockers, closed.reason) == ((), "completed")
    assert [each.at.number for each in waiting.blockers] == [1]


@given(st.lists(st.sampled_from(["# a", '"""', "'", "[[issue]]", "x = 1", "\n", "\\"])))
def test_a_line_is_found_or_not_but_never_fails(parts: list[str]) -> None:
    text = "".join(parts)
    found = line_of(text, "x", table="issue", index=1)
    assert found is None or 1 <= found <= text.count("\n") + 1
