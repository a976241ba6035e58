"""What GitHub sends, read strictly where it is used, passed over where it is not."""

from __future__ import annotations

import re
from typing import Annotated, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from forge_actors.domain.github.issues import (
    MAX_LABELS,
    MAX_TEXT,
    MAX_TITLE,
    GitHubFailed,
    Issue,
    IssueText,
    RepositoryFacts,
)
from forge_actors.domain.github.places import (
    MAX_ID,
    MAX_NUMBER,
    MAX_URL,
    IssueAt,
    Place,
    repository_name,
)
from forge_actors.domain.redaction import bounded

T = TypeVar("T")

_Id = Annotated[int, Meta(ge=1, le=MAX_ID)]
_Number = Annotated[int, Meta(ge=1, le=MAX_NUMBER)]
_Count = Annotated[int, Meta(ge=0, le=1_000_000)]
_Word = Annotated[str, Meta(min_length=1, max_length=64)]
_Url = Annotated[str, Meta(max_length=MAX_URL)]
_NodeId = Annotated[str, Meta(min_length=1, max_length=256)]
_MOMENT = re.compile(
    r"(?:19[7-9]|20[0-9])[0-9]-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    r"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:(?:[0-5][0-9]|60)Z"
)


class _Label(Struct):
    name: str | None = None


class _Named(Struct):
    full_name: str


class _Children(Struct):
    total: _Count | None = None


class _Dependencies(Struct):
    total_blocked_by: _Count | None = None


class _Issue(Struct):
    id: _Id
    node_id: _NodeId
    number: _Number
    state: _Word
    title: str
    html_url: _Url
    repository_url: _Url
    updated_at: str
    labels: list[str | _Label] = []
    state_reason: _Word | None = None
    pull_request: msgspec.Raw = msgspec.Raw(b"null")
    repository: _Named | None = None
    parent_issue_url: _Url | None = None
    sub_issues_summary: _Children | None = None
    issue_dependencies_summary: _Dependencies | None = None


class _Told(_Issue):
    body: str | None = None


class _Repository(Struct):
    id: _Id
    node_id: _NodeId
    full_name: str
    archived: bool = False
    disabled: bool = False
    has_issues: bool = True


class Complaint(Struct):
    """What an error says; every part of it may be missing."""

    message: str = ""
    documentation_url: str = ""


_one = msgspec.json.Decoder(_Issue)
_told = msgspec.json.Decoder(_Told)
_many = msgspec.json.Decoder(list[_Issue])
_repository = msgspec.json.Decoder(_Repository)
_complaint = msgspec.json.Decoder(Complaint)


def read_issue(body: bytes, host: str) -> Issue:
    """One issue of a server.

    Raises:
        GitHubFailed: it is none.
    """
    return _issue(_decoded(_one, body), host)


def read_text(body: bytes, host: str) -> tuple[Issue, IssueText]:
    """One issue, and what it says.

    Raises:
        GitHubFailed: it is none.
    """
    wire = _decoded(_told, body)
    issue = _issue(wire, host)
    return issue, IssueText(issue.title, bounded(wire.body or "", MAX_TEXT))


def read_issues(body: bytes, host: str) -> tuple[Issue, ...]:
    """A page of issues.

    Raises:
        GitHubFailed: it is none.
    """
    return tuple(_issue(each, host) for each in _decoded(_many, body))


def read_repository(body: bytes, host: str) -> RepositoryFacts:
    """A repository.

    Raises:
        GitHubFailed: it is none.
    """
    wire = _decoded(_repository, body)
    return RepositoryFacts(
        wire.id,
        wire.node_id,
        _place(wire.full_name, host),
        wire.archived,
        wire.disabled,
        wire.has_issues,
    )


def read_complaint(body: bytes) -> Complaint:
    """What an error says, if it can be read."""
    try:
        return _complaint.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Complaint()


def _decoded(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _malformed(str(error)) from None


def _issue(wire: _Issue, host: str) -> Issue:
    if not _MOMENT.fullmatch(wire.updated_at):
        raise _malformed("`updated_at` is no moment")
    named = wire.repository.full_name if wire.repository else ""
    place = _place(named or _path_of_repository(wire.repository_url), host)
    children, dependencies = wire.sub_issues_summary, wire.issue_dependencies_summary
    labels = (each if isinstance(each, str) else each.name for each in wire.labels)
    return Issue(
        id=wire.id,
        node_id=wire.node_id,
        at=IssueAt(place, wire.number),
        state=wire.state,
        reason=wire.state_reason,
        pull_request=bytes(wire.pull_request) != b"null",
        title=wire.title[:MAX_TITLE],
        url=wire.html_url,
        updated=wire.updated_at,
        labels=tuple(name for name in labels if name)[:MAX_LABELS],
        parent=_parent(wire.parent_issue_url, host),
        children=None if children is None else children.total,
        blockers=None if dependencies is None else dependencies.total_blocked_by,
    )


def _parent(url: str | None, host: str) -> IssueAt | None:
    if url is None:
        return None
    front, slash, number = url.rpartition("/issues/")
    digits = number.isascii() and number.isdecimal() and len(number) <= 10
    if not slash or not digits or not 1 <= int(number) <= MAX_NUMBER:
        raise _malformed("`parent_issue_url` leads to no issue")
    return IssueAt(_place(_path_of_repository(front), host), int(number))


def _path_of_repository(url: str) -> str:
    """`OWNER/NAME` of the address of a repository in the interface."""
    try:
        front, found, path = urlsplit(url).path.rpartition("/repos/")
    except ValueError:
        return ""
    return path if found and front in ("", "/api/v3") else ""


def _place(full_name: str, host: str) -> Place:
    found = repository_name(full_name)
    if found is None:
        raise _malformed("it does not say which repository it is about")
    return Place(host, *found)


def _malformed(why: str) -> GitHubFailed:
    return GitHubFailed("malformed", f"what GitHub sent cannot be used: {why}")
