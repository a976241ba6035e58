"""Places on GitHub, what its answers mean, and what it sends."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.github.answers import (
    MAX_WAIT,
    Answer,
    following,
    pace,
    refusal,
    spent,
)
from forge_actors.domain.github.issues import MAX_TITLE, GitHubFailed
from forge_actors.domain.github.places import (
    IssueAt,
    Place,
    api_base,
    checked_base,
    parse_issue_url,
    parse_place,
    remote_place,
    within,
)
from forge_actors.domain.github.wire import read_issue, read_issues, read_repository

if TYPE_CHECKING:
    from collections.abc import Callable

DEMO = Place("github.com", "octo", "demo")
NOW = 1_767_225_600.0


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("octo/demo", DEMO),
        ("Octo/Demo", DEMO),
        ("github.com/octo/demo", DEMO),
        ("ghe.example/octo/demo", Place("ghe.example", "octo", "demo")),
        ("https://github.com/octo/demo.git", DEMO),
        ("git@github.com:octo/demo.git", DEMO),
        ("ssh://git@ssh.github.com:443/octo/demo", DEMO),
        ("https://ghe.example:8443/a/b", Place("ghe.example:8443", "a", "b")),
        ("octo/.github", Place("github.com", "octo", ".github")),
    ],
)
def test_a_repository_can_be_written_in_several_ways(text: str, place: Place) -> None:
    assert parse_place(text, field="on") == place


@pytest.mark.parametrize(
    "text",
    [
        *("", "demo", "octo/", "/demo", "octo/demo/more/x", "octo/..", "a b/c"),
        *("octo/demo?x", "https://github.com/octo", "file:///octo/demo", "octo/d\n"),
        *("https://[::1/x/y", "-o/x", "octo/" + "d" * 101, "x" * 5000),
    ],
)
def test_what_is_no_repository_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="no repository such as octo/demo"):
        parse_place(text, field="on")


def test_a_remote_that_is_a_path_leads_to_no_server() -> None:
    for url in ("/srv/git/demo.git", "../demo", "file:///a/b", "C:\\a\\b", ""):
        assert remote_place(url) is None


def test_an_issue_is_known_by_its_url() -> None:
    at = IssueAt(DEMO, 7)
    for url in (
        "https://github.com/octo/demo/issues/7",
        "https://github.com/Octo/Demo/issues/7/",
        "https://www.github.com/octo/demo/issues/7?x=1#issuecomment-3",
    ):
        assert parse_issue_url(url) == at
    assert str(at) == "octo/demo#7"
    company = parse_issue_url("https://ghe.example/a/b/issues/1")
    assert str(company) == "ghe.example/a/b#1"
    for url in (
        *("https://github.com/octo/demo/pull/7", "octo/demo#7", "https://x/issues/7"),
        *("https://github.com/octo/demo/issues/0", "https://g/o/d/issues/99999999999"),
        *("ftp://github.com/o/d/issues/7", "https://github.com/o/d/issues/٣"),
    ):
        with pytest.raises(InvalidInput):
            parse_issue_url(url)


def test_each_server_has_its_interface() -> None:
    assert api_base("github.com") == "https://api.github.com"
    assert api_base("tenant.ghe.com") == "https://api.tenant.ghe.com"
    assert api_base("ghe.example:8443") == "https://ghe.example:8443/api/v3"
    assert checked_base("https://GHE/api/v3/", field="x") == "https://GHE/api/v3"
    assert checked_base("http://127.0.0.1:9/", field="x") == "http://127.0.0.1:9"
    for url in (
        *("http://ghe.example/api/v3", "https://u:p@h/", "https://h/?q", "h", ""),
        *("https://h:x/", "https:///api", "ftp://h/", "https://h\0/", "https://h/../x"),
    ):
        with pytest.raises(InvalidInput) as caught:
            checked_base(url, field="github.api")
        assert "u:p" not in str(caught.value)


def test_only_what_is_below_an_address_is_within_it() -> None:
    base = "https://ghe.example/api/v3"
    assert within(base, "https://ghe.example/api/v3/repos/o/d?page=2")
    assert within(base, "https://GHE.example:443/api/v3/repositories/1")
    for url in (
        *("https://ghe.example/api/v4/x", "http://ghe.example/api/v3/x", "/api/v3/x"),
        *("https://ghe.example:8443/api/v3/x", "https://evil/api/v3/x", ""),
        *("https://ghe.example/api/v3/../x", "https://ghe.example@evil/api/v3/x"),
        *("https://u@ghe.example/api/v3/x", "https://ghe.example/api/v3/x y"),
        *("https://ghe.example/api/v3", "https://ghe.example:x/api/v3/y"),
    ):
        assert not within(base, url), url


# -- answers -----------------------------------------------------------------------


def told(status: int, body: object = None, **headers: str) -> GitHubFailed:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = Answer(status, names, json.dumps(body).encode())
    error = refusal(answer, "GET /x", NOW)
    assert error is not None
    return error


def test_how_long_a_limit_lasts_is_what_it_says() -> None:
    assert told(429, retry_after="7").wait == 7
    assert told(403, retry_after="7", x_ratelimit_remaining="99").wait == 7
    later = "Thu, 01 Jan 2026 00:10:00 GMT"
    assert told(429, retry_after=later).wait == 600
    # Ours is wrong by a day: theirs counts.
    hour = {"x_ratelimit_remaining": "0", "x_ratelimit_reset": "1767142800"}
    theirs = "Wed, 31 Dec 2025 00:00:00 GMT"
    assert told(403, **hour, date=theirs).wait == 3600
    assert told(403, **hour).wait == 1  # it has passed, by ours
    assert told(403, x_ratelimit_remaining="0").wait == 60
    assert told(403, x_ratelimit_remaining="0", x_ratelimit_reset="9" * 12).wait == (
        MAX_WAIT
    )
    for odd in ("soon", "-5", "٣", "", "9" * 30):
        assert told(429, retry_after=odd).wait == 60


def test_a_limit_that_does_not_say_is_waited_for_longer_each_time() -> None:
    answer = Answer(429, {})
    waits = [refusal(answer, "x", NOW, before=number) for number in (0, 1, 2, 40)]
    assert [error and error.wait for error in waits] == [60, 120, 240, MAX_WAIT]


def test_the_second_kind_of_limit_is_known_by_its_marks() -> None:
    text = {"message": "You have exceeded a secondary rate limit"}
    docs = {"documentation_url": "https://x/#about-secondary-rate-limits"}
    for body in (text, docs):
        assert told(403, body, x_ratelimit_remaining="4000").kind == "rate-limited"
    assert told(403, {"message": "rate"}, x_ratelimit_remaining="4000").kind == "denied"


def test_what_an_error_repeats_is_harmless_and_short() -> None:
    body = {"message": "a\x1b[31m\n" + "b" * 5000 + " ghp_" + "x" * 36}
    text = str(told(500, body, x_github_request_id="A:1"))
    assert text.startswith("GitHub answered 500 to GET /x; a ")
    assert text.endswith("; request A:1")
    assert "\x1b" not in text
    assert "ghp_" not in text
    assert len(text) < 300


def test_the_last_of_an_hour_is_noticed() -> None:
    last = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) + 9)}
    assert spent(Answer(200, last), NOW) == 9
    assert spent(Answer(200, {"x-ratelimit-remaining": "1"}), NOW) is None
    assert spent(Answer(200, {}), NOW) is None


def test_the_next_page_is_found_however_it_is_written() -> None:
    assert following('<https://x/?a=1,2>; rel="next", <u>; rel="last"') == (
        "https://x/?a=1,2"
    )
    assert following('<u>; rel="last",<v>;title="a"; REL=Next') == "v"
    assert following('<u>; rel="prev next"') == "u"
    for nothing in (None, "", "<u>", "u; rel=next", '<u>; rel="last"', "<" * 9000):
        assert following(nothing) is None


def test_the_pace_is_a_number() -> None:
    assert pace({"x-poll-interval": "60"}) == 60
    assert pace({"x-poll-interval": "-1"}) == pace({}) == 0


# -- what is sent ------------------------------------------------------------------

LEAST: dict[str, Any] = {
    "id": 9012,
    "node_id": "I_1",
    "number": 12,
    "state": "open",
    "title": "Child",
    "html_url": "https://github.com/octo/demo/issues/12",
    "repository_url": "https://api.github.com/repos/Octo/Demo",
    "updated_at": "2026-01-01T00:00:00Z",
}


def issue(**more: object) -> Any:
    return read_issue(json.dumps({**LEAST, **more}).encode(), "github.com")


def test_an_issue_needs_no_more_than_what_is_always_there() -> None:
    least = issue()
    assert (least.at, least.labels, least.parent) == (IssueAt(DEMO, 12), (), None)
    assert (least.children, least.blockers, least.reason) == (None, None, None)
    assert not least.pull_request


def test_what_may_be_there_too_is_read_or_passed_over() -> None:
    one = issue(
        user=None,
        body=None,
        labels=["bug", {"name": "ready", "id": 1}, {"name": None}],
        pull_request={"url": "x"},
        parent_issue_url="https://ghe/api/v3/repos/octo/demo/issues/7",
        repository={"full_name": "octo/other"},
        sub_issues_summary={"total": 3, "completed": 1},
        issue_dependencies_summary={"total_blocked_by": 2, "more": {}},
        state_reason="duplicate",
        title="x" * 5000,
        something={"new": [1, 2]},
    )
    assert one.labels == ("bug", "ready")
    assert (one.pull_request, one.children, one.blockers) == (True, 3, 2)
    assert one.parent == IssueAt(DEMO, 7)
    assert one.at.place.name == "other"
    assert len(one.title) == MAX_TITLE
    assert issue(state="archived").state == "archived"


@pytest.mark.parametrize(
    "wrong",
    [
        *({"id": True}, {"id": 0}, {"id": 2**54}, {"id": "1"}, {"number": 0}),
        *({"number": 2**40}, {"node_id": ""}, {"state": 1}, {"state": ""}),
        *({"title": None}, {"updated_at": "yesterday"}, {"labels": [1]}),
        {"updated_at": "2026-01-01T00:00:00Z\n"},
        {"updated_at": "2026-13-01T00:00:00Z"},
        {"updated_at": "9026-01-01T00:00:00Z"},
        {"repository_url": "https://api.github.com/octo/demo"},
        {"repository_url": "https://api.github.com/x/repos/octo/demo"},
        {"repository_url": "https://api.github.com/repos/octo/demo/more"},
        {"repository": {"full_name": "octo"}},
        {"parent_issue_url": "https://api.github.com/repos/octo/demo/pulls/7"},
        {"parent_issue_url": "https://api.github.com/repos/octo/demo/issues/x"},
        {"sub_issues_summary": {"total": -1}},
    ],
    ids=json.dumps,
)
def test_an_issue_that_is_not_what_it_should_be_is_refused(
    wrong: dict[str, object],
) -> None:
    with pytest.raises(GitHubFailed, match="cannot be used") as caught:
        issue(**wrong)
    assert caught.value.kind == "malformed"


def test_a_repository_has_a_name_that_can_be_one() -> None:
    body = {"id": 1, "node_id": "R", "full_name": "Octo/Demo", "archived": True}
    facts = read_repository(json.dumps(body).encode(), "github.com")
    assert (facts.place, facts.archived, facts.has_issues) == (DEMO, True, True)
    body["full_name"] = "Octo/Demo/../x"
    with pytest.raises(GitHubFailed):
        read_repository(json.dumps(body).encode(), "github.com")


def told_or_refused(read: Callable[[bytes, str], object], body: bytes) -> str:
    try:
        read(body, "github.com")
    except GitHubFailed as error:
        return error.kind
    return "told"


@given(st.binary(max_size=200))
def test_bytes_are_read_or_refused(body: bytes) -> None:
    for read in (read_issue, read_issues, read_repository):
        assert told_or_refused(read, body) in ("told", "malformed")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(sorted(LEAST)), inner, max_size=4)
        ),
        max_leaves=12,
    ),
    st.sampled_from([*LEAST, "labels", "repository", "parent_issue_url"]),
)
def test_an_issue_with_anything_in_it_is_read_or_refused(
    value: object, name: str
) -> None:
    body = json.dumps([{**LEAST, name: value}]).encode()
    assert told_or_refused(read_issues, body) in ("told", "malformed")
