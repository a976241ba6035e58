"""Templates: places for values, and what no value can become."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import convert
from forge_actors.domain.templates import (
    Parameter,
    Template,
    TemplateTable,
    Value,
    checked,
    instance,
)


def made(job: dict[str, Any] | None = None, **parameters: dict[str, Any]) -> Template:
    table = {
        "name": "t",
        "job": {"argv": ["make", "${part}"]} if job is None else job,
        "parameters": parameters or {"part": {"default": "all"}},
    }
    return checked(convert(table, TemplateTable, where="t"), "t")


def test_values_fill_their_places_in_every_text_of_the_job() -> None:
    job = {
        "argv": ["make", "T=${part}", "-j", "${n}", "$$", "$${part}"],
        "env": {"PART": "${part}"},
        "name": "make ${part}",
        "cwd": "src/${part}",
        "agent": "claude",
        "prompt": "Mend ${part}.",
    }
    template = made(job, part={}, n={"default": 4})
    request = instance(template, {"part": "a b; rm -rf /"})
    assert request.argv == ["make", "T=a b; rm -rf /", "-j", "4", "$$", "${part}"]
    assert request.env == {"PART": "a b; rm -rf /"}
    assert (request.name, request.prompt) == (
        "make a b; rm -rf /",
        "Mend a b; rm -rf /.",
    )


@given(st.text(max_size=50).filter(lambda text: "\0" not in text))
def test_a_value_never_becomes_more_than_one_argument(value: str) -> None:
    template = made({"argv": ["make", "a${part}b", "c"]}, part={})
    assert instance(template, {"part": value}).argv == ["make", f"a{value}b", "c"]


@pytest.mark.parametrize(
    ("parameter", "value", "text"),
    [
        ({"default": 3}, "12", "12"),
        ({"default": 3}, 12, "12"),
        ({"default": True}, False, "false"),
        ({"type": "boolean"}, "true", "true"),
        ({"default": 1.5}, "0.25", "0.25"),
        ({"type": "number"}, 2, "2"),
        ({"choices": ["a", "b"]}, "b", "b"),
        ({"type": "integer", "choices": [1, 2]}, "+2", "2"),
        ({}, "", ""),
    ],
)
def test_a_value_is_of_the_kind_of_its_parameter(
    parameter: dict[str, Any], value: Value, text: str
) -> None:
    template = made(None, part=parameter)
    assert instance(template, {"part": value}).argv == ["make", text]


@pytest.mark.parametrize(
    ("parameter", "values", "said"),
    [
        ({"default": 3}, {"part": "three"}, r"values\.part: 'three' is not an integer"),
        ({"default": 3}, {"part": True}, "is not an integer"),
        ({"default": True}, {"part": "yes"}, "is not a boolean"),
        ({"type": "number"}, {"part": "nan"}, "is not a number"),
        ({"choices": ["a", "b"]}, {"part": "c"}, "'c' cannot be chosen"),
        ({}, {}, r"values\.part: is missing.*--set part=VALUE"),
        ({}, {"prat": "x"}, r"values\.prat: is no parameter.*did you mean 'part'"),
        ({}, {"part": 3}, "is not a string"),
        ({}, {"part": "x" * 9000}, "more than 8192 characters"),
        ({}, {"part": "a\0b"}, "has a NUL"),
    ],
)
def test_a_wrong_value_is_named(
    parameter: dict[str, Any], values: dict[str, Value], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        instance(made(None, part=parameter), values)


@pytest.mark.parametrize(
    ("job", "parameters", "said"),
    [
        (
            {"argv": ["x", "${y}"]},
            {"z": {}},
            r"t\.job\.argv\[1\]: nothing is called 'y'",
        ),
        ({"argv": ["x"]}, {"z": {}}, r"t\.parameters\.z: has no place"),
        ({"argv": []}, {}, r"t\.job\.argv: names no program"),
        (
            {"argv": ["sh", "-c", "make ${p}"]},
            {"p": {}},
            r"argv\[2\]: would be read by",
        ),
        ({"argv": ["env", "/bin/bash", "-eu", "-lc", "x ${p}"]}, {"p": {}}, "a shell"),
        (
            {"argv": ["x"], "after_job": "y ${p}"},
            {"p": {}},
            r"after_job: would be read",
        ),
        ({"agent": "a", "verify": "y ${p}"}, {"p": {}}, r"verify: would be read by"),
        ({"argv": ["x"], "labels": ["${p}"]}, {"p": {}}, r"labels: cannot have places"),
        ({"argv": ["x"], "kind": "${p}"}, {"p": {}}, "kind: cannot have places"),
        ({"argv": ["x"], "repo": "y"}, {}, r"t\.job\.repo: cannot be given"),
        ({"argv": ["x"], "authorised": ["push"]}, {}, "authorised: cannot be given"),
        ({"argv": ["x"], "cwd": "/etc"}, {}, "cwd: '/etc' is no folder within"),
        ({"argv": ["x"], "cwd": "a/../../b"}, {}, "is no folder within"),
        ({"argv": ["x"], "nise": 3}, {}, r"t\.job\.nise: is not a known field"),
        ({"argv": ["x", "${p}"]}, {"p": {"default": "c", "choices": ["a"]}}, "chosen"),
        (
            {"argv": ["x", "${p}"]},
            {"p": {"type": "integer", "default": "x"}},
            "integer",
        ),
        ({"argv": ["x"]}, {"p q": {}}, r"parameters\.p q: is no name"),
    ],
)
def test_a_template_that_cannot_work_is_refused_by_its_field(
    job: dict[str, Any], parameters: dict[str, Any], said: str
) -> None:
    table = {"name": "t", "job": job, "parameters": parameters}
    with pytest.raises(InvalidInput, match=said):
        checked(convert(table, TemplateTable, where="t"), "t")


def test_an_argument_of_a_shell_may_have_a_place_of_its_own() -> None:
    template = made({"argv": ["sh", "-c", 'make "$1"', "sh", "${part}"]}, part={})
    assert instance(template, {"part": "$(reboot)"}).argv[-1] == "$(reboot)"


def test_its_kind_follows_from_its_default() -> None:
    kinds = [Parameter(default=value).kind for value in ("x", 1, 1.5, True, None)]
    assert kinds == ["string", "integer", "number", "boolean", "string"]


def test_its_effects_are_those_that_it_says_and_plainly_has() -> None:
    job = {"argv": ["git", "push", "${part}"], "effects": ["release"]}
    assert made(job, part={}).effects == ("push", "release")
