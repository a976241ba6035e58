"""Watching issues: which of them changed, and how far that was seen.

GitHub tells issues in the order in which they changed, but may tell one a little late.
So what changed within the last minute is asked for again each time, and known by its
number, its state and its moment. A window is an open issue at one of its moments, so
whoever sees it again, after a restart, sees the same window.
"""

from __future__ import annotations

import calendar
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from forge_actors.domain.github.issues import ChangedQuery
from forge_actors.domain.harmless import clean
from forge_actors.domain.redaction import bounded
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.triggers import Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.github.issues import Issue

#: Seconds for which an issue may be told late.
OVERLAP = 60
#: Issues of that minute that are remembered.
MAX_KNOWN = 1000
#: Characters of a title in the environment of a job.
MAX_SHOWN_TITLE = 256
BEGIN = "1970-01-01T00:00:00Z"
#: What the job of an issue is told; a person may say it as well, to try something.
OF_AN_ISSUE = (NUMBER, URL, TITLE) = (
    "FORGE_ISSUE_NUMBER",
    "FORGE_ISSUE_URL",
    "FORGE_ISSUE_TITLE",
)


class IssuesSeen(Struct, frozen=True):
    """How far the changes of a repository were seen, as a schedule keeps it."""

    #: What changed before this moment is known, whatever is told of it.
    floor: str
    #: The last moment of a change.
    last: str
    #: By number: the state and moment of what changed since `floor`.
    known: dict[str, str] = {}


class News(Struct, frozen=True):
    """What a page of changes comes to."""

    seen: IssuesSeen
    windows: tuple[Window, ...] = ()
    #: There is more in it, for which there is no room now.
    more: bool = False


def first_query(labels: tuple[str, ...]) -> ChangedQuery:
    """Asks for where a watch begins."""
    return ChangedQuery(labels=labels, backwards=True)


def baseline(issues: Sequence[Issue]) -> IssuesSeen:
    """Where a watch begins: all that is there is known."""
    last = max((issue.updated for issue in issues), default=BEGIN)
    known = {
        str(issue.at.number): _mark(issue) for issue in issues if issue.updated == last
    }
    return IssuesSeen(last, last, known)


def news(seen: IssuesSeen, issues: Sequence[Issue], wall: float, most: int) -> News:
    """What is new in a page of changes, oldest first; at most so many windows."""
    windows: list[Window] = []
    known, last = dict(seen.known), seen.last
    for issue in issues:
        number, mark = str(issue.at.number), _mark(issue)
        if issue.updated < seen.floor or known.get(number) == mark:
            continue
        if issue.open and not issue.pull_request:
            if len(windows) == most:
                return News(_moved(seen, known, last), tuple(windows), more=True)
            windows.append(_window(issue, wall))
        known[number] = mark
        last = max(last, issue.updated)
    return News(_moved(seen, known, last), tuple(windows))


def behind(seen: IssuesSeen, *, stuck: bool) -> IssuesSeen:
    """Past a crowd that changed within a minute, so that nothing of it is asked for
    again; `stuck`: past a moment of which nothing more can be told."""
    floor = _later(seen.last, 1) if stuck else seen.last
    return _above(seen, max(floor, seen.floor))


def _moved(seen: IssuesSeen, known: dict[str, str], last: str) -> IssuesSeen:
    """Seen as far as `last`; what is too old to be told again is forgotten."""
    floor = max(seen.floor, _later(last, -OVERLAP))
    moved = _above(IssuesSeen(floor, last, known), floor)
    if len(moved.known) <= MAX_KNOWN:
        return moved
    moments = sorted(_moment(mark) for mark in moved.known.values())
    return _above(moved, moments[-MAX_KNOWN])


def _above(seen: IssuesSeen, floor: str) -> IssuesSeen:
    known = {n: mark for n, mark in seen.known.items() if _moment(mark) >= floor}
    newest = sorted(known.items(), key=lambda each: each[1])[-MAX_KNOWN:]
    return structs.replace(seen, floor=floor, known=dict(newest))


def _mark(issue: Issue) -> str:
    return f"{issue.updated} {issue.state}"


def _moment(mark: str) -> str:
    return mark.partition(" ")[0]


def _window(issue: Issue, wall: float) -> Window:
    at = issue.at
    title = bounded(clean(issue.title), MAX_SHOWN_TITLE)
    env = {
        NUMBER: str(at.number),
        # Made of what was checked: theirs could be anything.
        URL: f"https://{at.place.host}/{at.place.repo}/issues/{at.number}",
        TITLE: title,
    }
    key = f"issue-{at.number}-{issue.updated}"
    return Window(key, wall, f"issue {at} changed at {issue.updated}", env)


def _later(moment: str, seconds: int) -> str:
    """The moment so many seconds later."""
    date, _, rest = moment.partition("T")
    parts = [*date.split("-"), *rest.removesuffix("Z").split(":")]
    year, month, day, hour, minute, second = map(int, parts)
    since = calendar.timegm((year, month, day, hour, minute, second))
    told = timestamp(float(max(0, since + seconds)))
    return f"{told.partition('.')[0]}Z"
