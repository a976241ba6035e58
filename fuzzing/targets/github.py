"""What GitHub answers."""

from __future__ import annotations

import json
import math

from forge_actors.domain.github.answers import (
    MAX_WAIT,
    Answer,
    following,
    pace,
    refusal,
    spent,
)
from forge_actors.domain.github.issues import MAX_TEXT, MAX_TITLE, GitHubFailed
from forge_actors.domain.github.wire import (
    read_complaint,
    read_issue,
    read_issues,
    read_repository,
    read_text,
)
from fuzzing.target import Broken, Refusing, Target, check_message

NOW = 1_795_000_000.0
_asked = Refusing(GitHubFailed)


def bodies(data: bytes) -> None:
    issue = _asked(read_issue, data, "github.com")
    found = _asked(read_text, data, "github.com")
    if issue is not None and found is None:
        # Only its text can be what is wrong then.
        return
    if found is not None:
        read, text = found
        if read != issue or len(text.body) > MAX_TEXT or len(text.title) > MAX_TITLE:
            raise Broken(f"{text} has no bounds")
    page = _asked(read_issues, b"[" + data + b"," + data + b"]", "github.com")
    if issue is not None and page != (issue, issue):
        raise Broken(f"{page} is not twice {issue}")
    _asked(read_repository, data, "github.com")
    read_complaint(data)


def headers(data: bytes) -> None:
    """The first line is a status, the next ones are headers, the rest is a body."""
    lines = data.decode("latin-1").split("\n")
    digits = lines[0].isascii() and lines[0].isdecimal() and len(lines[0]) <= 3
    pairs = (line.partition(":")[::2] for line in lines[1:12])
    told = {name.lower(): text.strip() for name, text in pairs}
    answer = Answer(
        int(lines[0]) if digits else 429,
        told,
        b"\n".join(line.encode("latin-1") for line in lines[12:]),
    )
    for before in (0, 40):
        failed = refusal(answer, "issue 7", NOW, before=before)
        if failed is not None:
            check_message(str(failed))
            _check_wait(failed.wait)
    _check_wait(spent(answer, NOW))
    _check_wait(pace(told))
    following(told.get("link"))


def _check_wait(seconds: float | None) -> None:
    if seconds is not None and not (
        0 <= seconds <= MAX_WAIT and math.isfinite(seconds)
    ):
        raise Broken(f"it waits for {seconds} s")


_ISSUE = {
    "id": 5,
    "node_id": "I_5",
    "number": 7,
    "state": "open",
    "title": "T",
    "body": "B",
    "html_url": "https://github.com/octo/demo/issues/7",
    "repository_url": "https://api.github.com/repos/octo/demo",
    "updated_at": "2026-01-02T03:04:05Z",
    "labels": ["a", {"name": "b"}, {"name": None}],
    "parent_issue_url": "https://api.github.com/repos/octo/demo/issues/6",
    "sub_issues_summary": {"total": 3},
    "pull_request": None,
}
_REPOSITORY = {"id": 1, "node_id": "R_1", "full_name": "octo/demo", "archived": True}

TARGETS = (
    Target(
        "github-bodies",
        "an issue is read whole and bounded, alone as in a page, or refused",
        bodies,
        (
            json.dumps(_ISSUE).encode(),
            json.dumps(_REPOSITORY).encode(),
            b'{"message":"Not Found","documentation_url":"https://x"}',
            b'{"id":' + b"[" * 2000,
            b'{"\\u001b[2J":1,"id":"\\ud800\xff"}',
        ),
        (b'"id":', b'"labels":[', b"null", b"9007199254740993", b'"parent_issue_url":'),
    ),
    Target(
        "github-headers",
        "whatever a server says of its limits, the wait is finite and bounded",
        headers,
        (
            b"403\nx-ratelimit-remaining: 0\nx-ratelimit-reset: 1795000100\n",
            b"429\nretry-after: 60\ndate: Mon, 30 Nov 2026 21:00:00 GMT\n",
            b"503\nretry-after: Mon, 30 Nov 9999 21:00:00 GMT\nx-github-request-id: a",
            (
                b'200\nlink: <https://x/?page=2>; rel="next", <y>; rel=last\n'
                b"x-poll-interval: 60\n"
            ),
        ),
        (
            *(b"retry-after:", b"x-ratelimit-reset:", b"x-ratelimit-remaining: 0"),
            *(b"date:", b"link: <", b'>; rel="next"', b"99999999999999999999", b"GMT"),
        ),
    ),
)
