"""Webhooks: where they may lead, how they are signed, when they are tried again."""

from __future__ import annotations

import base64

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.webhooks import (
    LONGEST_RETRY,
    MAX_RETRY_AFTER,
    Answered,
    Target,
    chosen,
    delay,
    is_gone,
    parse_target,
    refusal,
    sign,
)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://a.example/x?y=z", Target("https", "a.example", 443, "/x?y=z")),
        ("https://a.example", Target("https", "a.example", 443, "/")),
        ("https://a.example:8443?q", Target("https", "a.example", 8443, "/?q")),
        ("http://127.0.0.1:8080/x", Target("http", "127.0.0.1", 8080, "/x")),
        ("http://localhost/x", Target("http", "localhost", 80, "/x")),
        ("http://[::1]:9/x", Target("http", "::1", 9, "/x")),
    ],
)
def test_a_url_leads_somewhere(url: str, target: Target) -> None:
    assert parse_target(url, field="url") == target


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/x",
        "http://127.0.0.1.evil.example/x",
        "http://localhost.evil.example/x",
        "http://0.0.0.0/x",
        "http://127.0.0.999/x",
        "http://127.0.0.01/x",
        "http://127.1/x",
        "https://user:password@a.example/x",
        "https://a.example/x#y",
        "https://a.example/x y",
        "https://a.example/x\r\nhost: b",
        "https://a.example/é",
        "https://a.example:0/x",
        "https://a.example:99999/x",
        "ftp://a.example/x",
        "//a.example",
        "https://",
        "https://a.example/" + "x" * 3000,
    ],
)
def test_other_urls_are_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_target(url, field="url")
    assert "password" not in str(caught.value)
    assert "example/" not in str(caught.value)


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The example of their documentation, also as other libraries check it."""
    secret = b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"
    made = sign(
        secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_secret_may_be_any_bytes() -> None:
    made = sign(b"whsec_no base64!", "a", 1, b"")
    assert len(base64.b64decode(made.removeprefix("v1,"))) == 32


def test_kinds_are_chosen_by_name_or_by_their_begin() -> None:
    known = ("job_failed", "job_queued", "paused")
    assert chosen(["job_*"], known, field="kinds") == ("job_failed", "job_queued")
    assert chosen(["paused", "job_q*"], known, field="kinds") == (
        "paused",
        "job_queued",
    )
    assert chosen(["*"], known, field="kinds") == known
    for word in ("job_gone", "x*", "job*d"):
        with pytest.raises(InvalidInput, match="no kind of event"):
            chosen([word], known, field="kinds")


def test_only_a_2xx_means_that_it_was_taken() -> None:
    assert refusal(Answered(204)) is None
    assert refusal(Answered(302)) == "it answered 302, which is not followed"
    assert refusal(Answered(500)) == "it answered 500"
    assert [is_gone(Answered(status)) for status in (404, 410)] == [False, True]


def test_tries_are_further_apart_each_time_and_never_too_far() -> None:
    waits = [delay(tries, None, 1.0) for tries in range(1, 60)]
    assert waits[:4] == [1.0, 2.0, 4.0, 8.0]
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_RETRY
    assert delay(1, None, 0.0) == 0.5
    assert delay(1, 30.0, 1.0) == 30.0
    assert delay(9, 1.0, 1.0) == 256.0
    assert delay(1, 1e9, 1.0) == MAX_RETRY_AFTER
