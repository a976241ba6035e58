"""Webhooks of a real service: each event at least once, in order, over everything."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from typing import TYPE_CHECKING

import pytest

from tests.receiver import receiving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forge_actors.testing.sender_contract import Came
    from tests.acceptance.service import LiveService
    from tests.receiver import Receiver

SECRET = b"a secret that nobody sees"
PATIENCE = 30.0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as made:
        yield made


@pytest.fixture
def hooked(
    make_service: Callable[[str], LiveService], receiver: Receiver
) -> LiveService:
    service = make_service(hook(receiver.url))
    service.cli("secret", "set", "HOOK", stdin=SECRET, status=0)
    service.start()
    service.add("app")
    return service


def hook(url: str, more: str = "") -> str:
    return f'[[webhooks]]\nname = "ci"\nurl = "{url}"\nsecret = "HOOK"\n{more}'


def seq(came: Came) -> int:
    number: int = json.loads(came.body)["data"]["seq"]
    return number


def until(receiver: Receiver, job: str, kind: str) -> None:
    """Wait until that has come."""
    while True:
        body = receiver.arrived.get(timeout=PATIENCE).body
        if not body:
            continue  # whoever sent it was killed before it was whole
        told = json.loads(body)
        if (told["type"], told["data"].get("job")) == (kind, job):
            return


def test_events_come_signed_in_order_and_without_a_gap(
    hooked: LiveService, receiver: Receiver
) -> None:
    job = hooked.bash("app", "true")
    until(receiver, job, "job_succeeded")
    numbers = [seq(came) for came in receiver.came]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    for came in receiver.came:
        moment, name = came.headers["webhook-timestamp"], came.headers["webhook-id"]
        signed = b".".join((name.encode(), moment.encode(), came.body))
        made = hmac.new(SECRET, signed, hashlib.sha256).digest()
        told = "v1," + base64.b64encode(made).decode()
        assert came.headers["webhook-signature"] == told
        assert name.split(".")[1] == str(seq(came))
    [view] = hooked.json("webhook", "list")
    assert (view["state"], view["detail"]) == ("open", None)


def test_nothing_is_lost_over_kills_and_failures(
    hooked: LiveService, receiver: Receiver
) -> None:
    for script in ("true", "false"):
        job = hooked.bash("app", script)
        # It came; how far that is is not durable yet, or it is.
        until(receiver, job, "job_queued")
        hooked.kill()
        hooked.start()
        end = hooked.end_of(job)["state"]
        until(receiver, job, f"job_{end}")
    receiver.tell(500, (503, 1), None, 302, 200)
    last = hooked.bash("app", "true")
    until(receiver, last, "job_succeeded")
    whole = [came for came in receiver.came if came.body]
    first = seq(whole[0])
    seen: dict[int, Came] = {}
    highest = first - 1
    for came in whole:
        number = seq(came)
        assert number <= highest + 1, "one was left out"
        highest = max(highest, number)
        before = seen.setdefault(number, came)
        assert before.body == came.body
        assert before.headers["webhook-id"] == came.headers["webhook-id"]
    assert len(whole) > len(seen), "what failed was told again"


def test_only_what_was_asked_for_is_told(
    make_service: Callable[[str], LiveService], receiver: Receiver
) -> None:
    more = 'kinds = ["job_succeeded", "job_f*"]\nrepositories = ["other"]\n'
    service = make_service(hook(receiver.url, more))
    service.cli("secret", "set", "HOOK", stdin=SECRET, status=0)
    service.start()
    service.add("app")
    service.add("other")
    service.wait(service.bash("app", "true"), service.bash("other", "true"))
    last = service.bash("other", "false")
    until(receiver, last, "job_failed")
    told = [json.loads(came.body) for came in receiver.came]
    assert [each["type"] for each in told] == ["job_succeeded", "job_failed"]
    assert {each["data"]["repo"] for each in told} == {"other"}


def test_one_that_is_gone_is_told_nothing_until_it_is_opened(
    hooked: LiveService, receiver: Receiver
) -> None:
    receiver.tell(410)
    job = hooked.bash("app", "true")
    closed = hooked.until(None, "webhook_closed")
    assert closed.data["how"] == "gone"
    hooked.end_of(job)
    count = len(receiver.came)
    status = hooked.json("status")
    assert any("the webhook ci is gone" in each for each in status["degraded"])
    [item] = json.loads(hooked.cli("inbox", "--json", status=0).out)["items"]
    assert (item["kind"], item["actions"][1]) == (
        "webhook",
        "forge-actors webhook open ci",
    )
    hooked.kill()
    offline = hooked.cli("inbox", status=0).out
    assert "the webhook ci is told nothing any more" in offline
    hooked.start()
    refused = hooked.cli("webhook", "test", "ci")
    assert (refused.status, "it answered 410" in refused.err) == (3, True)
    receiver.tell(200)
    assert hooked.cli("webhook", "test", "ci", status=0).out == "it answered 200\n"
    assert len(receiver.came) == count + 2
    hooked.cli("webhook", "open", "ci", status=0)
    until(receiver, job, "job_succeeded")
    assert hooked.json("status")["degraded"] == []
    again = hooked.cli("webhook", "open", "ci")
    assert (again.status, "is not closed" in again.err) == (3, True)
    assert hooked.cli("webhook", "open", "nobody").status == 2


def test_one_that_fails_for_too_long_is_given_up(
    make_service: Callable[[str], LiveService], receiver: Receiver
) -> None:
    receiver.tell(500)
    service = make_service(hook(receiver.url, 'give_up = "1s"\n'))
    service.cli("secret", "set", "HOOK", stdin=SECRET, status=0)
    service.start()
    service.add("app")
    assert service.until(None, "webhook_closed").data == {
        "webhook": "ci",
        "how": "suspended",
        "reason": "it answered 500",
    }
    assert service.json("webhook", "list")[0]["state"] == "suspended"


def test_no_secret_is_shown_anywhere(hooked: LiveService, receiver: Receiver) -> None:
    receiver.tell(500)
    hooked.bash("app", "true")
    receiver.arrived.get(timeout=PATIENCE)
    shown = [
        hooked.cli(*words, status=0).out
        for words in (
            ("settings", "show"),
            ("settings", "show", "--json"),
            ("webhook", "list"),
            ("status", "--json"),
            ("events", "--json"),
        )
    ]
    shown.append((hooked.home / "service.log").read_text())
    assert not any(
        part in text for text in shown for part in ("secret-path", SECRET.decode())
    )
    assert f"http://127.0.0.1:{receiver.port}/…" in shown[0]


def test_settings_that_make_no_sense_are_refused(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    settings = service.home / "settings.toml"
    good = hook("https://a.example/hidden")
    for text, problem in (
        (good.replace("https", "http"), "has to be https"),
        (good.replace("/hidden", " /hidden"), "is no URL"),
        (good + good, "is there twice"),
        (good + 'kinds = ["job_gone"]\n', "is no kind of event"),
        (good + "retries = 5\n", "is not a known field"),
        ('[[webhooks]]\nname = "x"\n', "missing required field"),
        (good.replace('secret = "HOOK"\n', ""), "missing required field `secret`"),
        (good.replace("url = ", "url = 5 #"), "expected `str`, got `int`"),
        ('[notify]\nwebhook = ["https://hidden"]\n', "expected `str"),
        ('[notify]\nwebhook = "http://a.example/hidden"\n', "has to be https"),
    ):
        settings.write_text(text)
        done = service.cli("settings", "check")
        assert done.status == 2
        assert problem in done.err
        assert "hidden" not in done.err
