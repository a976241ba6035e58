"""Keys of requests that may come twice: how they are read, and what they stand for."""

from __future__ import annotations

import pytest

from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.idempotency import HEADER, check_whole, key_of, keyed
from forge_actors.domain.requests import JobRequest


def jobs(count: int, *unique: int) -> list[JobRequest]:
    """So many jobs, those at these places with a key of their own."""
    return [
        JobRequest("app", ["true"], unique=f"u{place}" if place in unique else None)
        for place in range(count)
    ]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (None, None),
        ("k", "k"),
        ('"k"', "k"),
        ("!#~[]", "!#~[]"),
        ("x" * 128, "x" * 128),
    ],
)
def test_a_key_may_be_quoted(text: str | None, key: str | None) -> None:
    assert key_of(text) == key


@pytest.mark.parametrize(
    "text", ["", '""', '"k', 'k"', "a b", "a\\b", "é", "x" * 129, "a\n", '"a"b"']
)
def test_what_is_no_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 128") as error:
        key_of(text)
    assert error.value.field == HEADER


def test_each_job_of_a_request_has_an_id_by_its_place() -> None:
    made = jobs(3)
    keyed(made, "k")
    assert [each.request_id for each in made] == ["k", "k#1", "k#2"]
    with pytest.raises(InvalidInput, match="request_id") as error:
        keyed(made[1:], "k")
    assert error.value.field == HEADER


@pytest.mark.parametrize(
    ("count", "unique", "known", "whole"),
    [
        (2, (), set(), True),
        (2, (), {"k", "k#1"}, True),
        (1, (), {"k"}, True),
        # It stood for fewer jobs, or for more.
        (2, (), {"k"}, False),
        (2, (), {"k#1"}, False),
        (2, (), {"k", "k#1", "k#2"}, False),
        (1, (), {"k", "k#1"}, False),
        # Those that were there by another key have no id of this one.
        (3, (0,), {"k#1", "k#2"}, True),
        (3, (2,), {"k", "k#1"}, True),
        (3, (2,), {"k", "k#1", "k#3"}, False),
        (2, (0, 1), set(), True),
        (2, (0, 1), {"k#2"}, False),
    ],
)
def test_a_key_stands_for_as_many_jobs_as_before(
    count: int, unique: tuple[int, ...], known: set[str], whole: bool
) -> None:
    if whole:
        check_whole(jobs(count, *unique), "k", known.__contains__)
        return
    with pytest.raises(Refused, match=f"{HEADER}: 'k' belongs to another number"):
        check_whole(jobs(count, *unique), "k", known.__contains__)
