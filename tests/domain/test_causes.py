"""Causes: how they are written, and which jobs and branches are meant."""

from __future__ import annotations

import msgspec
import pytest

from forge_actors.domain.causes import (
    MAX_TOGETHER,
    AllOf,
    Branch,
    Cause,
    Clean,
    Ended,
    Files,
    Issues,
    Jobs,
    Traits,
    parse_cause,
)
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.github.places import Place
from forge_actors.domain.scheduling import comes_once
from forge_actors.domain.triggers import Every, On, passed, same_windows, windows

DEMO = Place("github.com", "octo", "demo")
JOB = Traits("0job", "check", "tests", ("night", "slow"), "schedule:nightly")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("clean", Clean()),
        ("succeeded:build", Ended(Jobs("named", "build"), succeeded=True)),
        ("ended:label:night*", Ended(Jobs("label", "night*"))),
        ("ended:*", Ended(Jobs("any"))),
        ("succeeded:name:a:b", Ended(Jobs("name", "a:b"), succeeded=True)),
        ("succeeded:job:0job", Ended(Jobs("job", "0job"), succeeded=True)),
        ("all:a,kind:check", AllOf((Jobs("named", "a"), Jobs("kind", "check")))),
        ("branch:release/*", Branch("release/*")),
        ("file:src/**", Files("src/**")),
    ],
)
def test_each_is_read_as_it_is_written(text: str, cause: Cause) -> None:
    assert parse_cause(text) == cause
    assert str(cause) == text
    assert cause.told
    stored = msgspec.json.encode(On(cause, 60.0))
    assert msgspec.json.decode(stored, type=On) == On(cause, 60.0)
    assert str(On(cause, 60.0)) == f"on {text}, once in 1m at most"


@pytest.mark.parametrize(
    "text",
    [
        *("", "clean:x", "succeeded", "succeeded:", "ended:label:", "branch:"),
        *("file:", "all:", "all:a,,b", "nothing:x", "kind:check", "ended:kind:chek"),
        *("branch:a\nb", "file:\0", f"branch:{'x' * 201}", "all:a,job:0job"),
        "all:" + ",".join(map(str, range(MAX_TOGETHER + 1))),
    ],
)
def test_what_is_none_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_cause(text)
    assert refused.value.field == "on"
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("jobs", "meant"),
    [
        (Jobs("any"), True),
        (Jobs("named", "tests"), True),
        (Jobs("named", "nightly"), True),
        (Jobs("named", "night"), False),
        (Jobs("name", "te*"), True),
        (Jobs("name", "nightly"), False),
        (Jobs("label", "slow"), True),
        (Jobs("label", "fast"), False),
        (Jobs("kind", "check"), True),
        (Jobs("kind", "agent-run"), False),
        (Jobs("schedule", "nightly"), True),
        (Jobs("schedule", "night"), False),
        (Jobs("job", "0job"), True),
        (Jobs("job", "0jo"), False),
    ],
)
def test_jobs_are_meant_by_what_they_are(jobs: Jobs, meant: bool) -> None:
    assert jobs.has(JOB) is meant
    if jobs.exact:
        assert ((jobs.by, jobs.value) in JOB.keys) is meant
    assert not Jobs("name", "*").has(Traits("1", "check"))


def test_branches_of_remotes_are_meant_only_by_that_name() -> None:
    assert Branch("*").has("feature/x")
    assert not Branch("*").has("remotes/origin/main")
    assert Branch("remotes/origin/*").has("remotes/origin/main")
    assert not Branch("main").has("mainly")


def test_no_time_brings_a_window() -> None:
    trigger = On(Clean())
    assert list(windows(trigger, 0.0, 0)) == []
    assert passed(trigger, 5.0, 7, 1e9, 10).last == []
    assert passed(trigger, 5.0, 7, 1e9, 10).number == 7


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("issues", Issues()),
        ("issues:octo/demo", Issues(DEMO)),
        ("issues:https://github.com/Octo/Demo.git", Issues(DEMO)),
        ("issues:label:help wanted", Issues(None, ("help wanted",))),
        (
            "issues:ghe.example/a/b, label:bug,label:bug,label:type:x",
            Issues(Place("ghe.example", "a", "b"), ("bug", "type:x")),
        ),
    ],
)
def test_issues_are_those_of_a_repository_with_all_of_the_labels(
    text: str, cause: Issues
) -> None:
    assert parse_cause(text) == cause
    assert parse_cause(str(cause)) == cause


@pytest.mark.parametrize(
    "text",
    [
        *("issues:", "issues:demo", "issues:octo/demo,bug", "issues:octo/demo,label:"),
        *("issues:octo/demo,label:a\x1bb", "issues:octo/..", "clean:", "clean:x"),
        "issues:octo/demo," + ",".join(f"label:{n}" for n in range(21)),
    ],
)
def test_what_names_no_issues_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_cause(text)


def test_how_often_issues_are_asked_for_changes_no_window() -> None:
    issues = On(Issues(DEMO, ("bug",), 60.0))
    assert same_windows(issues, On(Issues(DEMO, ("bug",), 90.0)))
    assert not same_windows(issues, On(Issues(DEMO, (), 60.0)))
    assert not same_windows(issues, Every(60.0))
    assert not same_windows(Every(60.0), issues)
    assert same_windows(Every(60.0), Every(60.0))
    assert same_windows(On(Clean(), 60.0), On(Clean()))
    assert not same_windows(On(Clean()), On(Branch("main")))
    assert not same_windows(Every(60.0), Every(61.0))
    assert str(issues) == "on issues:octo/demo,label:bug, asked every 1m"


@pytest.mark.parametrize(
    ("cause", "once"),
    [
        (Ended(Jobs("job", "0job")), True),
        (Ended(Jobs("named", "build")), False),
        (Ended(Jobs("any")), False),
    ],
)
def test_only_one_job_by_its_id_ends_once(cause: Ended, once: bool) -> None:
    assert comes_once(On(cause)) is once
