"""Which EPIC a URL means, and what is no URL of one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.epic.urls import parse_epic_url
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.github.places import IssueAt, Place

GOOD = "https://github.com/octo/demo/issues/7"
EPIC = IssueAt(Place("github.com", "octo", "demo"), 7)


@pytest.mark.parametrize(
    "url",
    [
        GOOD,
        "https://www.github.com/Octo/DEMO/issues/7",
        "https://GitHub.com:443" + GOOD[18:],
    ],
)
def test_the_url_of_an_issue_is_an_epic(url: str) -> None:
    assert parse_epic_url(url) == EPIC


def test_other_servers_are_those_that_are_set_up() -> None:
    url = "https://ghe.example/octo/demo/issues/7"
    with pytest.raises(InvalidInput, match=r"ghe.example is no server that is set up"):
        parse_epic_url(url)
    assert parse_epic_url(url, hosts=("ghe.example",)).place.host == "ghe.example"
    tenant = parse_epic_url("https://some.ghe.com/octo/demo/issues/7")
    assert tenant.place.host == "some.ghe.com"
    near = "http://127.0.0.1:8080/octo/demo/issues/7"
    host = "127.0.0.1:8080"
    assert parse_epic_url(near, hosts=(host,), plain=(host,)).place.host == host
    with pytest.raises(InvalidInput, match="must begin with https://"):
        parse_epic_url(near, hosts=(host,))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("https://github.com/octo/demo/pull/7", "is a pull request; an EPIC is"),
        (f"{GOOD}?a=1", "leave off what is behind the number: '.*/issues/7'"),
        (f"{GOOD}#issuecomment-1", "leave off what is behind the number"),
        ("http://github.com/octo/demo/issues/7", "must begin with https://"),
        *(
            (url, "is no issue such as https://github.com/octo/demo/issues/7")
            for url in (
                "",
                f"{GOOD}/",
                f" {GOOD}",
                f"{GOOD}\n",
                f"{GOOD}/events",
                "https://github.com/octo/demo/issues/07",
                "https://github.com/octo/demo/issues/0",
                "https://github.com/octo/demo/issues/-7",
                "https://github.com/octo/demo/issues/+7",
                "https://github.com/octo/demo/issues/7.0",
                "https://github.com/octo/demo/issues/\N{ARABIC-INDIC DIGIT SEVEN}",
                "https://github.com/octo/demo/issues/2147483649",
                "https://github.com/octo/demo/issues/99999999999",
                "https://github.com/octo/demo/Issues/7",
                "https://github.com/octo/demo/issues",
                "https://github.com/octo/demo",
                "https://github.com/octo//issues/7",
                "https://github.com/octo/../issues/7",
                "https://github.com/octo/de%6do/issues/7",
                "https://github.com/octo/demo/x/issues/7",
                "https://me:secret@github.com/octo/demo/issues/7",
                "https://github.com:99999/octo/demo/issues/7",
                "ssh://github.com/octo/demo/issues/7",
                "github.com/octo/demo/issues/7",
                "octo/demo#7",
                "7",
            )
        ),
        *(
            (f"https://{host}/octo/demo/issues/7", "is no server that is set up")
            for host in (
                *("gist.github.com", "api.github.com", "github.com.evil.example"),
                *("a.b.ghe.com", "github.com:80", "ghe.com"),
            )
        ),
    ],
)
def test_what_is_no_issue_of_a_known_server_is_refused(url: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as caught:
        parse_epic_url(url)
    assert "secret" not in str(caught.value)
    assert str(caught.value).isprintable()


@given(st.text(max_size=5), st.integers(0, len(GOOD)), st.integers(0, 3))
def test_whatever_is_taken_is_written_in_that_form(
    more: str, place: int, less: int
) -> None:
    url = GOOD[:place] + more + GOOD[place + less :]
    try:
        at = parse_epic_url(url)
    except InvalidInput:
        return
    shown = f"https://{at.place.host}/{at.place.repo}/issues/{at.number}"
    assert url.lower().replace("www.", "").replace(":443", "") == shown
