"""Inputs: how they are named, what a pattern means, which folder they are in."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.inputs import (
    Input,
    folder_of,
    input_text,
    means,
    moved_on,
    split_input,
)
from forge_actors.edges.node.agent.collecting import Patterns

NAMES = st.sampled_from(["a", "b", ".a", "ab", "a.b"])
PARTS = st.sampled_from(["a", "*", "**", "?", "[ab]", ".*", "a*", "*.b"])


def collected(pattern: str, path: str) -> bool:
    """Whether the program that collects would take it."""
    below = Patterns([(0, tuple(pattern.split("/")))])
    for name in path.split("/"):
        meant, below = below.meet(name)
        if meant:
            return True
    return False


@given(st.lists(PARTS, min_size=1, max_size=4), st.lists(NAMES, min_size=1, max_size=4))
@example(["**", "**", "a"], ["a"])
@example(["a", "**"], ["a", "b"])
@example(["**"], [".a"])
def test_a_pattern_means_what_it_means_when_files_are_collected(
    parts: list[str], names: list[str]
) -> None:
    pattern, path = "/".join(parts), "/".join(names)
    assert means(pattern, path) == collected(pattern, path)


def test_an_input_is_a_job_and_what_is_meant_of_it() -> None:
    assert split_input("4f2k9x", field="inputs") == ("4f2k9x", None)
    assert split_input("build:./dist/", field="inputs") == ("build", "dist")
    assert split_input("build:a:b", field="inputs") == ("build", "a:b")
    assert input_text(Input("4f2k9x", "build", "dist")) == "4f2k9x:dist"
    assert input_text(Input("4f2k9x", "build")) == "4f2k9x"


@pytest.mark.parametrize("text", ["", ":dist", "build:", "build:../x", "build:/etc"])
def test_what_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="inputs"):
        split_input(text, field="inputs")


@pytest.mark.parametrize("name", [None, "", ".", "..", "a/b", ".a", "a b", "é", "-a"])
def test_a_name_that_is_no_folder_is_the_id(name: str | None) -> None:
    assert folder_of("4f2k9x", name, set()) == "4f2k9x"


def test_a_name_is_the_folder_of_one_job() -> None:
    assert folder_of("4f2k9x", "build-1.2", {"other"}) == "build-1.2"
    assert folder_of("4f2k9x", "build", {"build"}) == "4f2k9x"


def test_inputs_follow_the_jobs_that_were_made_anew() -> None:
    inputs = (Input("1", "1", "a"), Input("2", "build"), Input("3", "3"))
    assert moved_on(inputs, {"1": "8", "2": "9"}) == (
        Input("8", "8", "a"),
        Input("9", "build"),
        Input("3", "3"),
    )
