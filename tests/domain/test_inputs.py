"""Inputs: how they are named, what a pattern means, which folder they are in."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forge_actors.domain.artifacts import (
    UNMATCHED,
    ArtifactFile,
    Artifacts,
    LeftOut,
    check_path,
)
from forge_actors.domain.errors import InvalidInput, StoreFailed
from forge_actors.domain.inputs import (
    Input,
    folder_of,
    input_text,
    means,
    missing,
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


ALL, SOME = Input("j1", "build"), Input("j1", "build", "dist/**")


def kept(*files: str, state: str = "complete", **left: str) -> Artifacts:
    """What a job kept, and for which reasons it left out others, by their paths."""
    return Artifacts(
        1,
        state,
        files=[ArtifactFile(path, 1, "") for path in files],
        left_out=[LeftOut(path, reason) for path, reason in left.items()],
    )


@pytest.mark.parametrize("one", [ALL, SOME])
def test_files_that_were_kept_can_be_had(one: Input) -> None:
    assert missing(one, kept("dist/a", "other")) is None
    assert missing(one, kept("dist/a", **{"more/*": UNMATCHED, "": UNMATCHED})) is None
    error = "job j1 kept no artifact"
    assert missing(one, kept()) == error + (
        "" if one.pattern is None else " that dist/** means"
    )


@pytest.mark.parametrize("one", [ALL, SOME])
def test_files_that_are_not_there_any_more_or_never_were_cannot(one: Input) -> None:
    removed = missing(one, kept("dist/a", state="removed"))
    assert removed == "the artifacts of job j1 were removed by the clean-up"
    broken = Artifacts(1, "incomplete", error="the disk is full")
    assert missing(one, broken) == "job j1 kept no artifacts: the disk is full"
    some = kept("dist/a", **{"dist/b": "it is too large"})
    assert missing(one, some) == "job j1 did not keep 'dist/b': it is too large"
    any_ = kept("dist/a", **{"x": UNMATCHED, "": "there were too many"})
    assert missing(one, any_) == "job j1 did not keep 'something': there were too many"


def test_only_what_is_meant_has_to_have_been_kept() -> None:
    some = kept("dist/a", "log", **{"log/b": "it is too large"})
    assert missing(SOME, some) is None
    assert missing(ALL, some) == "job j1 did not keep 'log/b': it is too large"
    assert missing(SOME, kept("log")) == "job j1 kept no artifact that dist/** means"


@pytest.mark.parametrize("path", ["a", "a/b", ".a", "...", "a b/c"])
def test_a_path_of_a_kept_file_leads_below(path: str) -> None:
    assert check_path(path) == path


@pytest.mark.parametrize(
    "path", ["", "/a", "a/", "a//b", ".", "a/.", "../a", "a/..", "a\0b", "./a"]
)
def test_a_path_of_a_kept_file_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(StoreFailed, match="a collected file has the path"):
        check_path(path)
