"""The job file of `run`: what it may hold, and how a mistake is told."""

from __future__ import annotations

import tomllib

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.jobfile import JobFile, check
from forge_actors.domain.requests import convert

GOOD = """
[limits]
workers = 4
[providers.local]
limit = 1
[[repository]]
name = "app"
path = "."
[[repository]]
name = "lib"
clone = "https://example.invalid/lib.git"
[[job]]
name = "lint"
repo = "app"
argv = ["ruff", "check", "."]
kind = "check"
claims = ["read:workspace"]
priority = "P1"
timeout = "10m"
[[job]]
repo = "lib"
argv = ["true"]
after = ["lint"]
"""


def read(text: str) -> JobFile:
    file = convert(tomllib.loads(text), JobFile)
    check(file)
    return file


def refusal(text: str) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        read(text)
    return caught.value


def test_a_file_has_repositories_jobs_and_settings() -> None:
    file = read(GOOD)
    assert [repository.name for repository in file.repository] == ["app", "lib"]
    assert [job.after for job in file.job] == [[], ["lint"]]
    assert file.settings == {
        "limits": {"workers": 4},
        "providers": {"local": {"limit": 1}},
        "pressure": {},
        "scheduling": {},
        "output": {},
    }


REPOSITORY = '[[repository]]\nname = "app"\npath = "."\n'
JOB = '[[job]]\nrepo = "app"\nargv = ["true"]\n'


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        ("job = []\n" + REPOSITORY, "job", "no [[job]]"),
        (JOB.replace("app", "ap") + REPOSITORY, "job[0].repo", "'ap' is no"),
        (JOB + REPOSITORY + REPOSITORY, "repository[1].name", "there twice"),
        (
            JOB + REPOSITORY.replace("app", "My App"),
            "repository[0].name",
            "no repository name",
        ),
        (JOB + '[[repository]]\nname = "app"\n', "repository[0]", "path or a clone"),
        (JOB + REPOSITORY + 'clone = "x"\n', "repository[0]", "path or a clone"),
        (JOB, "input", "missing required field `repository`"),
        (REPOSITORY, "input", "missing required field `job`"),
        (JOB + "prioritty = 1\n" + REPOSITORY, "job[0].prioritty", "not a known field"),
        (JOB + "name = 1\n" + REPOSITORY, "job[0].name", "expected `str | null`"),
        (
            "[[repositories]]\n" + JOB + REPOSITORY,
            "repositories",
            "did you mean 'repository'?",
        ),
    ],
)
def test_a_mistake_is_told_with_the_place_of_its_field(
    text: str, field: str, problem: str
) -> None:
    error = refusal(text)
    assert error.field == field
    assert problem in error.problem


def test_an_unknown_repository_is_answered_with_the_known_ones() -> None:
    error = refusal(JOB.replace("app", "ap") + REPOSITORY)
    assert error.allowed == ("app",)
