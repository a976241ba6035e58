"""Which release may serve a home, decided from what the home and the program say."""

from __future__ import annotations

import pytest
from msgspec import structs

from forge_actors.domain.releases import ActiveRelease, Release, at_start

MINE = Release("1.0", "ab" * 32, "/opt/a/forge_actors")
ACTIVE = ActiveRelease(1, 4, "cd" * 32, 0.0, MINE, None)


def test_a_release_is_named_by_its_version_and_the_first_digits_of_its_content() -> (
    None
):
    assert MINE.id == "1.0-abababababababab"
    assert str(MINE) == "1.0-abababababababab (/opt/a/forge_actors)"


@pytest.mark.parametrize(
    ("changed", "others_exist", "verdict"),
    [
        ({}, True, "same"),
        ({"path": "/opt/b/forge_actors"}, True, "same"),
        ({"digest": "ef" * 32}, True, "replaces"),
        ({"version": "1.1"}, True, "replaces"),
        ({"digest": "ef" * 32, "path": "/opt/b/forge_actors"}, True, "refused"),
        ({"digest": "ef" * 32, "path": "/opt/b/forge_actors"}, False, "replaces"),
        ({"version": "1.1", "path": "/opt/b/forge_actors"}, True, "refused"),
    ],
)
def test_another_build_may_serve_only_in_the_place_of_the_active_one(
    changed: dict[str, str], others_exist: bool, verdict: str
) -> None:
    active = structs.replace(ACTIVE, release=structs.replace(MINE, **changed))
    assert at_start(active, MINE, others_exist=others_exist) == verdict


def test_the_first_release_of_a_home_may_serve_it() -> None:
    assert at_start(None, MINE, others_exist=False) == "first"


@pytest.mark.parametrize("changed", [{"revision": 5}, {"token_digest": "ef" * 32}])
def test_an_activation_differs_in_its_revision_or_in_its_token(
    changed: dict[str, object],
) -> None:
    assert ACTIVE.is_still(structs.replace(ACTIVE))
    assert not ACTIVE.is_still(structs.replace(ACTIVE, **changed))
