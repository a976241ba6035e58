"""What is new among issues, and how far that was seen."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.github.issues import Issue
from forge_actors.domain.github.places import IssueAt, Place
from forge_actors.domain.github.watching import (
    BEGIN,
    MAX_KNOWN,
    IssuesSeen,
    baseline,
    behind,
    news,
)

DEMO = Place("github.com", "octo", "demo")
WALL = 5.0


def moment(second: int) -> str:
    return f"2026-01-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


def issue(number: int, second: int, state: str = "open", **more: Any) -> Issue:
    known: dict[str, Any] = {
        "pull_request": False,
        "title": "A title",
        "url": "https://elsewhere/",
        **more,
    }
    at, updated = IssueAt(DEMO, number), moment(second)
    return Issue(number, "I", at, state, None, updated=updated, **known)


def keys(*issues: Issue, seen: IssuesSeen, most: int = 99) -> list[str]:
    return [window.key for window in news(seen, issues, WALL, most).windows]


def test_what_is_there_at_first_is_no_news() -> None:
    seen = baseline([issue(3, 20), issue(2, 20), issue(1, 10)])
    assert keys(issue(1, 10), issue(2, 20), issue(3, 20), seen=seen) == []
    # In the same second something else may change still.
    assert keys(issue(2, 20), issue(4, 20), issue(5, 21), seen=seen) == [
        *(f"issue-4-{moment(20)}", f"issue-5-{moment(21)}"),
    ]


def test_in_an_empty_repository_everything_is_news() -> None:
    seen = baseline([])
    assert seen == IssuesSeen(BEGIN, BEGIN)
    assert len(keys(issue(1, 1), seen=seen)) == 1


def test_an_open_issue_that_changed_is_a_window_with_what_its_job_is_told() -> None:
    hostile = "Fix \x1b[31m`rm -rf`\n$(id) \u202eevil" + "x" * 900
    found = news(baseline([]), [issue(7, 30, title=hostile)], WALL, 9)
    [window] = found.windows
    assert (window.key, window.due) == (f"issue-7-{moment(30)}", WALL)
    assert window.cause == f"issue octo/demo#7 changed at {moment(30)}"
    title = window.env.pop("FORGE_ISSUE_TITLE")
    assert title.startswith("Fix `rm -rf` $(id) evilxxx")
    assert len(title) == 256
    assert window.env == {
        "FORGE_ISSUE_NUMBER": "7",
        "FORGE_ISSUE_URL": "https://github.com/octo/demo/issues/7",
    }


def test_closed_ones_and_pull_requests_are_seen_and_no_windows() -> None:
    seen = baseline([])
    issues = [issue(1, 1, "closed"), issue(2, 2, pull_request=True), issue(3, 3)]
    found = news(seen, issues, WALL, 9)
    assert [window.key for window in found.windows] == [f"issue-3-{moment(3)}"]
    assert keys(*issues, seen=found.seen) == []
    assert found.seen.last == moment(3)
    # Opened again it is another state, were it in the same second.
    assert keys(issue(1, 1), seen=found.seen) == [f"issue-1-{moment(1)}"]


def test_one_that_is_told_late_is_seen_within_a_minute() -> None:
    found = news(baseline([issue(1, 100)]), [issue(2, 300)], WALL, 9)
    assert found.seen.floor == moment(240)
    assert keys(issue(3, 239), seen=found.seen) == []
    assert keys(issue(3, 250), issue(2, 300), seen=found.seen) == [
        f"issue-3-{moment(250)}"
    ]


def test_what_has_no_room_comes_next_time() -> None:
    seen = baseline([])
    issues = [issue(number, number) for number in range(1, 6)]
    told: list[str] = []
    for _ in range(3):
        found = news(seen, issues, WALL, 2)
        assert len(found.windows) <= 2
        told += [window.key for window in found.windows]
        seen = found.seen
        assert found.more == (len(told) < 5)
    assert told == [f"issue-{number}-{moment(number)}" for number in range(1, 6)]
    assert news(seen, issues, WALL, 0).windows == ()


def test_what_is_remembered_is_bounded() -> None:
    issues = [issue(number, 100 + number // 500) for number in range(1, 3000)]
    found = news(baseline([]), issues, WALL, 10_000)
    assert len(found.windows) == 2999
    assert len(found.seen.known) == MAX_KNOWN
    assert keys(issue(2999, 105), seen=found.seen) == []


def test_behind_a_crowd_nothing_of_it_is_asked_for_again() -> None:
    crowd = [issue(number, 100) for number in range(1, 50)]
    seen = news(baseline([]), crowd, WALL, 99).seen
    assert seen.floor == moment(40)
    after = behind(seen, stuck=False)
    assert (after.floor, len(after.known)) == (moment(100), 49)
    assert keys(*crowd, issue(99, 100), seen=after) == [f"issue-99-{moment(100)}"]
    lost = behind(after, stuck=True)
    assert (lost.floor, lost.known) == (moment(101), {})


@given(
    st.lists(
        st.tuples(
            st.integers(1, 6),
            st.integers(0, 90),
            st.sampled_from(["open", "closed", "touched"]),
        ),
        max_size=30,
    ),
    st.integers(1, 4),
)
def test_every_state_that_is_looked_at_is_told_once(
    steps: list[tuple[int, int, str]], most: int
) -> None:
    """However the changes are spread over time, however little room there is."""
    now = 0
    issues: dict[int, Issue] = {}
    seen = baseline([])
    told: list[str] = []

    def look() -> bool:
        nonlocal seen
        listed = sorted(
            (one for one in issues.values() if one.updated >= seen.floor),
            key=lambda one: one.updated,
        )
        found = news(seen, listed, WALL, most)
        told.extend(window.key for window in found.windows)
        seen = found.seen
        return found.more

    for number, seconds, what in steps:
        now += seconds
        before = issues.get(number)
        state = before.state if what == "touched" and before else what
        state = "open" if state == "touched" else state
        issues[number] = issue(number, now, state)
        look()
    while look():
        pass
    final = {f"issue-{n}-{one.updated}" for n, one in issues.items() if one.open}
    assert final <= set(told)
    assert look() is False
