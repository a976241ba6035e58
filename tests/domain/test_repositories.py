"""Names of repositories."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.repositories import check_name, name_from_folder


@pytest.mark.parametrize("name", ["a", "my-repo", "a.b_c-9", "x" * 64])
def test_a_name_is_up_to_64_plain_characters(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "A", "a b", "a/b", "é", "x" * 65, "a\n", "a:b"])
def test_any_other_name_is_refused_and_the_field_named(name: str) -> None:
    with pytest.raises(InvalidInput, match="is no repository name") as caught:
        check_name(name, field="repository[1].name")
    assert caught.value.field == "repository[1].name"


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("forge", "forge"),
        ("My Project", "my-project"),
        ("(draft)", "draft"),
        ("日本", "repository"),
        ("", "repository"),
        ("x" * 100, "x" * 64),
    ],
)
def test_the_default_name_is_the_folders_made_fit(folder: str, name: str) -> None:
    assert name_from_folder(folder) == name


@given(st.text())
def test_every_folder_gives_a_name_that_is_allowed(folder: str) -> None:
    assert check_name(name_from_folder(folder))
