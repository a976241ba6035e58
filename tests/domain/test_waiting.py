"""Why a job waits: the states for claims, and the words for tokens."""

from __future__ import annotations

import pytest

from forge_actors.domain.capacity import ACTIVE_REPOSITORIES, Lack
from forge_actors.domain.claims import FAMILIES, Family
from forge_actors.domain.jobs import WAITING, State
from forge_actors.domain.waiting import describe_lack, noun, state_for_family


@pytest.mark.parametrize(
    ("family", "state"),
    [
        ("workspace", "waiting_for_workspace"),
        ("path", "waiting_for_workspace"),
        ("repo-content", "waiting_for_workspace"),
        ("heavy-check", "waiting_for_heavy_check"),
        ("integration", "waiting_for_integration"),
        ("git-ref", "waiting_for_integration"),
        ("git-refs", "waiting_for_integration"),
        ("release", "waiting_for_release_barrier"),
        ("git-index", "queued"),
        ("temp", "queued"),
    ],
)
def test_the_family_of_the_held_claim_names_the_state(
    family: Family, state: State
) -> None:
    assert state_for_family(family) == state


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_a_waiting_state(family: Family) -> None:
    assert state_for_family(family) in WAITING


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("workers", "workers"),
        ("heavy_checks", "heavy checks"),
        ("agents", "agents"),
        ("provider:codex", "codex slots"),
        (ACTIVE_REPOSITORIES, "active repositories"),
        ("something-new", "something-new"),
    ],
)
def test_a_token_has_a_name_for_people(token: str, words: str) -> None:
    assert noun(token) == words


def test_a_lack_is_told_as_how_many_of_how_many() -> None:
    lack = Lack("provider:codex", 3, 3, ("g1", "g2", "g3"))
    assert describe_lack(lack) == "3 of 3 codex slots are in use"
