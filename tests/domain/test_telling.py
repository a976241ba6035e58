"""Small things that are told: causes, markers of damage, events, what is selected."""

from __future__ import annotations

from typing import Any

import pytest

from forge_actors.domain.accepting import accepted_event
from forge_actors.domain.changes import JobDetails
from forge_actors.domain.claims import Claim
from forge_actors.domain.clock_steps import take_in
from forge_actors.domain.damage import SetAside, read_marker, told, write_marker
from forge_actors.domain.effects import Authority
from forge_actors.domain.epic.telling import names
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.events import ACCEPTED, shown_data
from forge_actors.domain.jobs import Job
from forge_actors.domain.launch import Secrets
from forge_actors.domain.poison import MAX_ERROR, Poison, cause, only, why_aside
from forge_actors.domain.redaction import private_roots
from forge_actors.domain.selection import Selection, check_selection
from forge_actors.domain.services import service_name

SECRET = "ghp_" + "a1B2" * 9
ROOTS = private_roots(["/home/eva"], [], [])


def test_the_cause_of_a_failure_is_the_first_error_that_is_no_group() -> None:
    inner = ExceptionGroup("b", [ValueError(f"no\n  {SECRET}"), TypeError("y")])
    text = cause(ExceptionGroup("a", [inner, KeyError("z")]))
    assert text.startswith("ValueError: no ")
    assert SECRET not in text
    assert len(cause(ValueError("x" * 2000))) == MAX_ERROR
    assert only(inner, (ValueError, TypeError))
    assert not only(inner, ValueError)
    assert only(ValueError(), ValueError)
    assert not only(ValueError(), TypeError)


def test_what_was_set_aside_says_whether_it_is_a_job_or_all_of_a_repository() -> None:
    waiting = why_aside(Poison("r1", "ValueError: no", 5.0, "j1"), "app")
    assert (waiting.kind, waiting.since) == ("policy", 5.0)
    assert waiting.detail.startswith("it was set aside")
    assert "ValueError: no" in waiting.detail
    assert "forge-actors repo enable app" in waiting.detail
    whole = why_aside(Poison("r1", "x", 5.0), "app")
    assert whole.detail.startswith("its repository was set aside")


def test_a_marker_of_damage_is_read_back_and_a_torn_one_says_that_it_is_there() -> None:
    found = SetAside("page 4 is torn", "damaged/1.db", 5.5)
    assert read_marker(write_marker(found)) == found
    for torn in (b"", b"{", b"[]", b'{"reason": "x"}', b"[" * 100_000):
        assert read_marker(torn) == SetAside("store.damaged is there", "", 0.0)
    words = told("/home/x", found)
    assert "/home/x is damaged (page 4 is torn)" in words
    assert "damaged/1.db" in words
    for way in ("FILE", "--salvage", "--empty"):
        assert f"forge-actors restore --home /home/x {way}" in words
    assert "aside" not in told("/home/x", SetAside("x", "", 0.0))


def test_what_is_shown_of_an_event_has_no_secrets_and_no_private_paths() -> None:
    error = {"code": "EXIT_NONZERO", "message": f"/home/eva/x: {SECRET}"}
    shown: Any = shown_data({"error": error, "attempt": 2}, ROOTS)
    assert shown["attempt"] == 2
    assert shown["error"]["code"] == "EXIT_NONZERO"
    assert shown["error"]["message"].startswith("<home>/x: ")
    assert SECRET not in shown["error"]["message"]
    shown = shown_data({"reason": f"/home/eva {SECRET}"}, ROOTS)
    assert shown["reason"].startswith("<home> ")
    assert SECRET not in shown["reason"]
    for plain in ({"reason": ACCEPTED}, {"attempt": 1}):
        assert shown_data(plain, ROOTS) == plain


def job(**fields: Any) -> Job:
    about: dict[str, Any] = {"id": "j1", "repo": "r1", "kind": "command"}
    about |= {"priority": 2, "claims": (), "tokens": (), "queued_at": 100.0}
    return Job(**about | fields)


def test_a_job_is_accepted_with_all_that_does_not_change() -> None:
    event = accepted_event(job(), JobDetails(5.0, "cli"))
    assert (event.kind, event.at, event.repo, event.job) == (
        *("job_queued", 5.0),
        *("r1", "j1"),
    )
    assert event.data.keys() == {"reason", "origin", "kind", "priority"}
    assert (event.data["reason"], event.data["origin"]) == (ACCEPTED, "cli")
    assert event.data["kind"] == "command"
    claim = Claim("write", "path", "src")
    details = JobDetails(5.0, "cli", "unit", ("a",), "openai", retry_of="j0")
    whole = job(claims=(claim,), after=("j0",), work="w1", state="held")
    authority = Authority(True, "schedule s", ("push",), ("merge",))
    event = accepted_event(whole, details, authority)
    assert event.kind == "job_held"
    told = dict(event.data)
    del told["reason"], told["origin"], told["kind"], told["priority"]
    assert told == {
        "claims": (claim,),
        "after": ("j0",),
        "provider": "openai",
        "name": "unit",
        "labels": ("a",),
        "retry_of": "j0",
        "work": "w1",
        "effects": ("push",),
        "authorised": ("merge",),
    }
    told = accepted_event(job(), details, Authority(declared=("push",))).data
    assert told["effects"] == ("push",)
    assert "authorised" not in told


def test_moments_of_a_stored_job_become_those_of_the_runtime() -> None:
    read = job(queued_at=100.0, retry_at=130.0, held_at=110.0, started_at=120.0)
    take_in(read, 40.0, 500.0)
    assert (read.queued_at, read.retry_at) == (60.0, 90.0)
    assert (read.held_at, read.started_at) == (70.0, 80.0)
    plain = job(queued_at=100.0)
    take_in(plain, 40.0, 500.0)
    assert (plain.queued_at, plain.retry_at, plain.held_at, plain.started_at) == (
        *(60.0, None),
        *(None, None),
    )


def test_no_stored_job_has_waited_since_later_than_now() -> None:
    read = job(queued_at=100.0, retry_at=130.0)
    take_in(read, 0.0, 50.0)
    assert (read.queued_at, read.retry_at) == (50.0, 80.0)
    early = job(queued_at=100.0, retry_at=90.0)
    take_in(early, 0.0, 50.0)
    assert early.retry_at == 50.0


def test_a_selection_says_more_than_how_far_its_jobs_are() -> None:
    for selection in (
        Selection(jobs=["j1"]),
        Selection(repo=["r"]),
        Selection(state=["failed"]),
        Selection(kind=["command"]),
        Selection(label=["a"]),
        Selection(origin=["cli"]),
        Selection(work=["w"]),
        Selection(failed=True),
    ):
        check_selection(selection)
    for nothing in (Selection(), Selection(active=True), Selection(unretried=True)):
        with pytest.raises(InvalidInput) as caught:
            check_selection(nothing)
        assert caught.value.field == "selection"


def test_secrets_are_printed_as_their_names() -> None:
    assert (
        repr(Secrets(A="x", B="y")) == str(Secrets(A="x", B="y")) == "<secrets: A, B>"
    )
    assert repr(Secrets()) == "<secrets: none>"


def test_a_service_is_named_by_its_home() -> None:
    name = service_name("/home/eva/\udcff")
    assert name == service_name("/home/eva/\udcff") != service_name("/home/eva/x")
    assert name.startswith("forge-actors-")
    assert len(name) == len("forge-actors-") + 12


def test_issues_are_named_in_order() -> None:
    assert names([12, 3]) == "#3, #12"
    assert names([]) == ""
