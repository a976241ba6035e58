"""A plan: the graph of an EPIC without GitHub, as people write it into files.

One file has all issues, or a folder has one file for each:

    title = "The importer"

    [[issue]]
    number = 2
    title = "Load what was parsed"
    body = "..."
    blocked_by = [1]

What is in it is as strict as it can be: a key that is not known is an error, and each
error names its file, its line and its key. Ids are made of the key of the plan and of
numbers, so that the same plan is the same EPIC however often it is read.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct

from forge_actors.domain.epic.graph import (
    CLOSED,
    MAX_BLOCKERS,
    OPEN,
    BlockerNode,
    ChildNode,
    EpicNode,
    RepositoryNode,
    sorted_blockers,
)
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.github.issues import MAX_TEXT, MAX_TITLE
from forge_actors.domain.github.places import MAX_NUMBER, IssueAt, Place
from forge_actors.domain.requests import convert
from forge_actors.domain.toml import line_of, read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

#: Issues of one plan, the bytes of one of its files and of all of them.
MAX_ISSUES = 500
MAX_FILE_BYTES, MAX_BYTES = 1024 * 1024, 8 * 1024 * 1024
#: The number of the EPIC itself, unless the plan has another one.
EPIC_NUMBER = 1000
#: In place of the server of a repository.
PLAN_HOST = "file"
#: In a folder: what is said of the EPIC itself; what is no issue; what is one.
EPIC_FILE = "epic.toml"
SUFFIXES = (".toml", ".md")
NO_ISSUES = ("readme.md",)
_FENCE = "+++"
_NUMBERED = re.compile(r"0*([1-9][0-9]{0,9})(?![0-9])")
_HEADING = re.compile(r"#[ \t]+(?P<title>[^\n]*[^\s#])[ \t#]*(?:\n|\Z)")
_SLUG = re.compile(r"[^a-z0-9_.-]+")

T = TypeVar("T")
Number = Annotated[int, Meta(ge=1, lt=MAX_NUMBER)]
Title = Annotated[str, Meta(min_length=1, max_length=MAX_TITLE)]


class PlanFile(Struct, frozen=True):
    """One file, by its name."""

    name: str
    text: str


class _Epic(Struct, frozen=True, forbid_unknown_fields=True):
    title: Title | None = None
    number: Number = EPIC_NUMBER


class _Plan(Struct, frozen=True, forbid_unknown_fields=True):
    title: Title | None = None
    number: Number = EPIC_NUMBER
    issue: list[dict[str, Any]] = []


class PlanIssue(Struct, frozen=True, forbid_unknown_fields=True):
    """One issue as it is written."""

    number: Number
    title: Title
    body: Annotated[str, Meta(max_length=MAX_TEXT)] = ""
    blocked_by: Annotated[tuple[Number, ...], Meta(max_length=MAX_BLOCKERS)] = ()
    state: Literal["open", "closed"] = "open"
    #: Of a closed one; else it is `completed`.
    reason: Literal["completed", "not-planned", "duplicate"] | None = None


class Plan(Struct, frozen=True):
    """All of it, in the order in which it is worked through."""

    title: str | None
    number: int
    issues: tuple[PlanIssue, ...]


class _Source(Struct, frozen=True):
    """Where one issue is written, to say it in errors."""

    file: str
    text: str
    #: The place among the tables of the file; None: the file is the issue.
    index: int | None = None

    def wrong(self, key: str, problem: str, number: object = None) -> InvalidInput:
        """An error about a key of the issue with this number."""
        table, index = ("", 0) if self.index is None else ("issue", self.index)
        line = line_of(self.text, key.partition("[")[0], table=table, index=index)
        place = self.file if line is None else f"{self.file}:{line}"
        if type(number) is int and number > 0:
            place = f"{place}: issue {number}"
        elif table:
            place = f"{place}: issue[{index}]"
        return InvalidInput(f"{place}: {key}" if key else place, problem)


def read_plan(file: PlanFile) -> Plan:
    """A plan that is one file.

    Raises:
        InvalidInput: naming the file, and the line and the key where that is known.
    """
    table = read_table(file.text, file.name)
    top = _Source(file.name, file.text)
    plan = _converted(table, _Plan, top)
    found = [
        (_issue(entry, source), source)
        for index, entry in enumerate(plan.issue)
        for source in [_Source(file.name, file.text, index)]
    ]
    return _checked(plan.title, plan.number, found, file.name)


def read_folder(files: Iterable[PlanFile], name: str) -> Plan:
    """A plan that is a folder of this name, with a file for each issue.

    Raises:
        InvalidInput: naming the file, and the line and the key where that is known.
    """
    epic, found = _Epic(), []
    for file in sorted(files, key=lambda each: each.name):
        if file.name == EPIC_FILE:
            table = read_table(file.text, file.name)
            epic = _converted(table, _Epic, _Source(file.name, file.text))
        else:
            entry, source = _read_one(file)
            found.append((_issue(entry, source), source))
    found.sort(key=lambda each: each[0].number)
    return _checked(epic.title, epic.number, found, name)


def is_issue_file(name: str) -> bool:
    """Whether a file in the folder of a plan is read."""
    return (
        name.endswith(SUFFIXES)
        and not name.startswith((".", "_"))
        and name.lower() not in NO_ISSUES
    )


def _read_one(file: PlanFile) -> tuple[dict[str, Any], _Source]:
    """The issue that a file is: TOML, or a text with TOML between two `+++` above."""
    if file.name.endswith(".toml"):
        source = _Source(file.name, file.text)
        entry = read_table(file.text, file.name)
    else:
        front, body = _parted(file)
        source = _Source(file.name, front)
        entry = read_table(front, file.name)
        if "body" in entry:
            raise source.wrong("body", f"is what stands below the {_FENCE} of the file")
        heading = _HEADING.match(body)
        if heading is not None and "title" not in entry:
            entry["title"] = heading["title"]
            body = body[heading.end() :].lstrip("\n")
        entry["body"] = body
    numbered = _NUMBERED.match(file.name)
    if numbered is not None:
        entry.setdefault("number", int(numbered[1]))
    return entry, source


def _parted(file: PlanFile) -> tuple[str, str]:
    """What is above in TOML, on the lines where it stands, and the text."""
    lines = file.text.split("\n")
    if lines[0].rstrip() != _FENCE:
        return "", file.text.lstrip("\n")
    for number, line in enumerate(lines[1:], 1):
        if line.rstrip() == _FENCE:
            body = "\n".join(lines[number + 1 :]).lstrip("\n")
            return "\n".join(["", *lines[1:number]]), body
    raise InvalidInput(f"{file.name}:1", f"there is no second {_FENCE}")


def _issue(entry: dict[str, Any], source: _Source) -> PlanIssue:
    issue = _converted(entry, PlanIssue, source)
    if issue.reason is not None and issue.state == OPEN:
        raise source.wrong(
            "reason", 'is of an issue with state = "closed"', issue.number
        )
    return issue


def _converted(table: Mapping[str, Any], wanted: type[T], source: _Source) -> T:
    try:
        return convert(table, wanted)
    except InvalidInput as error:
        key = "" if error.field == "input" else error.field
        allowed = f" (allowed: {', '.join(error.allowed)})" if error.allowed else ""
        number = table.get("number") if wanted is PlanIssue else None
        raise source.wrong(key, f"{error.problem}{allowed}", number) from None


def _checked(
    title: str | None,
    number: int,
    found: Sequence[tuple[PlanIssue, _Source]],
    name: str,
) -> Plan:
    """What one issue says of others fits with them."""
    if len(found) > MAX_ISSUES:
        raise InvalidInput(name, f"has more than {MAX_ISSUES} issues")
    first: dict[int, _Source] = {}
    for issue, source in found:
        if issue.number in first:
            where = f" in {first[issue.number].file}"
            raise source.wrong("number", f"is there twice, first{where}", issue.number)
        if issue.number == number:
            raise source.wrong(
                "number", "is that of the EPIC: give it another `number`", number
            )
        first[issue.number] = source
    for issue, source in found:
        for other in issue.blocked_by:
            if other not in first:
                problem = f"there is no issue {other} in this plan"
                raise source.wrong("blocked_by", problem, issue.number)
    return Plan(title, number, tuple(issue for issue, _ in found))


# -- as a graph ----------------------------------------------------------------------


def repository_of(key: str) -> RepositoryNode:
    """What stands for a repository: each plan is one, with a folder of its own."""
    slug = _slug(key)
    digest = sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
    folder = "plans", f"{slug[:40]}-{digest[:8]}"
    return RepositoryNode(_id(key, 0), Place(PLAN_HOST, "plan", slug), folder)


def issue_url(place: Place, number: int) -> str:
    """Where people find an issue: of a plan its name and the number."""
    if place.host == PLAN_HOST:
        return f"{place.name}#{number}"
    return f"https://{place.host}/{place.repo}/issues/{number}"


def epic_of(plan: Plan, key: str) -> EpicNode:
    home = repository_of(key).place
    return EpicNode(
        _id(key, plan.number),
        IssueAt(home, plan.number),
        OPEN,
        plan.title or home.name,
        len(plan.issues),
    )


def children_of(plan: Plan, key: str) -> tuple[ChildNode, ...]:
    """The issues with what blocks them, in their order."""
    epic = epic_of(plan, key)
    bare = {
        issue.number: BlockerNode(
            IssueAt(epic.at.place, issue.number),
            _id(key, issue.number),
            issue.state,
            _reason(issue),
        )
        for issue in plan.issues
    }
    return tuple(
        ChildNode(
            bare[issue.number].id,
            bare[issue.number].at,
            issue.state,
            _reason(issue),
            parent=epic.at,
            parent_id=epic.id,
            blockers=()
            if issue.state == CLOSED
            else sorted_blockers(bare[each] for each in set(issue.blocked_by)),
            title=issue.title,
        )
        for issue in plan.issues
    )


def _reason(issue: PlanIssue) -> str | None:
    """As GitHub writes it."""
    if issue.state == OPEN:
        return None
    return (issue.reason or "completed").replace("-", "_")


def _id(key: str, number: int) -> int:
    """Of a plan and a number, from 1 to less than 2**48: as good as never the same."""
    text = f"{key}\0{number}".encode("utf-8", "surrogateescape")
    return int.from_bytes(sha256(text).digest()[:6], "big") or 1


def _slug(key: str) -> str:
    """The last part of a path, without what the name of a repository may not have."""
    name = key.rstrip("/").rpartition("/")[2].removesuffix(".toml").lower()
    return _SLUG.sub("-", name).strip("-.")[:100] or "plan"
