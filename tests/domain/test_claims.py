"""Claims: how they are written, what they name, and which exclude each other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.claims import (
    FAMILIES,
    MAX_CLAIM_LENGTH,
    MODES,
    Claim,
    conflict,
    first_conflict,
    overlap,
    parse_claim,
    strongest,
)
from forge_actors.domain.errors import InvalidInput

PATHS = ["", "*", "**", ".", "src", "src/a", "src/*", "sr", "/abs", "~/x", "../y", "a?"]
CLAIMS = st.builds(
    Claim,
    mode=st.sampled_from(MODES),
    family=st.sampled_from(FAMILIES),
    rest=st.sampled_from(PATHS),
    checkout=st.sampled_from(["", "/here", "/there"]),
)


def here(text: str) -> Claim:
    return parse_claim(text, checkout="/here")


def there(text: str) -> Claim:
    return parse_claim(text, checkout="/there")


def test_the_rest_of_a_claim_is_taken_whole_after_the_second_colon() -> None:
    assert here("write:path:src/a:b") == Claim("write", "path", "src/a:b", "/here")


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("read:workspace", Claim("read", "workspace", "", "/here")),
        ("read:workspace:/other", Claim("read", "workspace", "", "/other")),
        ("write:repo-content:*", Claim("write", "repo-content", "*")),
        ("write:repo-content", Claim("write", "repo-content", "*")),
        ("exclusive:git-index:", Claim("exclusive", "git-index", "", "/here")),
        ("write:git-ref:main", Claim("write", "git-ref", "main")),
        ("write:heavy-check:e2e", Claim("write", "heavy-check", "e2e")),
    ],
)
def test_only_what_lies_in_a_checkout_is_the_checkouts_own(
    text: str, claim: Claim
) -> None:
    assert here(text) == claim


@pytest.mark.parametrize("text", ["", "path:src", "Write:path:src", "own:path:src"])
def test_an_unknown_mode_is_refused_with_the_modes_there_are(text: str) -> None:
    with pytest.raises(InvalidInput, match="no known mode") as caught:
        parse_claim(text, checkout="/here", field="jobs[2].claims[0]")
    assert caught.value.field == "jobs[2].claims[0]"
    assert caught.value.allowed == MODES


@pytest.mark.parametrize("text", ["read", "read:", "read:paths:x", "write:Path:x"])
def test_an_unknown_family_is_refused_with_the_families_there_are(text: str) -> None:
    with pytest.raises(InvalidInput, match="no known resource family") as caught:
        here(text)
    assert caught.value.field == "claims"
    assert caught.value.allowed == FAMILIES


@pytest.mark.parametrize("text", ["read:path:a\0b", "read:path:" + "x" * 5000])
def test_a_claim_is_bounded_and_holds_no_nul(text: str) -> None:
    with pytest.raises(InvalidInput, match=str(MAX_CLAIM_LENGTH)) as caught:
        here(text)
    assert caught.value.field == "claims"
    longest = f"read:path:{'x' * (MAX_CLAIM_LENGTH - 10)}"
    assert str(here(longest)) == longest
    with pytest.raises(InvalidInput):
        here(f"{longest}x")


def test_a_claim_of_a_whole_family_is_shown_as_it_is_written() -> None:
    assert str(here("read:workspace")) == "read:workspace"


@given(CLAIMS)
def test_what_is_shown_of_a_claim_reads_back_as_the_claim(claim: Claim) -> None:
    again = parse_claim(str(claim), checkout=claim.checkout)
    assert (again.mode, again.family) == (claim.mode, claim.family)
    if claim.family not in ("workspace", "repo-content"):
        assert again.rest == claim.rest


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        ("path:src", "path:src", True),
        ("path:src", "path:src/a/b", True),
        ("path:src/", "path:./src", True),
        ("path:src/*", "path:src/a", True),
        ("path:src/**", "path:src", True),
        ("path:src/*", "path:lib", False),
        ("path:src/**", "path:srcs/a", False),
        ("path:src//a", "path:src/a", True),
        ("path:src/a?", "path:src/b", True),
        ("path:src/[ab]", "path:src/b", True),
        ("path:s*/a", "path:src/a", True),
        ("path:**/a", "path:lib/a", True),
        ("path:X", "path:src", False),
        ("path:src", "path:srcs", False),
        ("path:src/a", "path:src/b", False),
        ("path:src:a", "path:src", False),
        ("workspace", "workspace", True),
        ("workspace", "path:src", True),
        ("workspace", "git-index", True),
        ("workspace", "git-head", True),
        ("workspace", "git-ref:main", False),
        ("git-index", "git-head", False),
        ("git-index", "path:src", False),
        ("git-ref:main", "git-ref:main", True),
        ("git-ref:main", "git-ref:dev", True),
        ("git-refs", "git-ref:dev", True),
        ("repo-content:*", "repo-content:*", True),
        ("repo-content:*", "path:src", True),
        ("repo-content:*", "workspace", True),
        ("repo-content:*", "git-index", True),
        ("repo-content:*", "git-head", True),
        ("repo-content:*", "git-ref:main", True),
        ("repo-content:*", "worktree:7", False),
        ("repo-content:*", "heavy-check:e2e", False),
        ("repo-content:*", "integration:main", False),
        ("worktree:7", "worktree:7", True),
        ("worktree:7", "worktree:8", False),
        ("build-cache:c", "temp:c", False),
        ("integration:main", "integration:main", True),
        ("heavy-check:e2e", "heavy-check:unit", False),
    ],
)
def test_two_keys_overlap_as_the_table_says(one: str, other: str, common: bool) -> None:
    left, right = here(f"write:{one}"), here(f"write:{other}")
    assert overlap(left, right) is common
    assert overlap(right, left) is common
    assert conflict(left, right) is common


@pytest.mark.parametrize("family", ["workspace", "path:src", "git-index", "git-head"])
def test_linked_worktrees_do_not_wait_for_each_other(family: str) -> None:
    assert conflict(here(f"write:{family}"), here(f"write:{family}"))
    assert not conflict(here(f"write:{family}"), there(f"write:{family}"))


def test_refs_and_content_are_shared_by_all_checkouts() -> None:
    assert conflict(here("write:git-ref:a"), there("write:git-ref:b"))
    assert conflict(here("write:repo-content:*"), there("read:workspace"))


def test_a_claim_without_a_checkout_is_held_against_every_checkout() -> None:
    anywhere = Claim("write", "path", "src")
    assert conflict(anywhere, here("write:path:src/a"))
    assert conflict(anywhere, there("read:workspace"))


INCOMPARABLE = ["", ".", "*", "**", "a/*/b", "src/[ab]", "s?c", "*.py"]
LEADING_OUT = ["/abs", "~/x", "..", "src/../../x"]


@pytest.mark.parametrize("path", INCOMPARABLE + LEADING_OUT)
def test_a_path_that_cannot_be_compared_overlaps_every_path_of_its_checkout(
    path: str,
) -> None:
    claim = here(f"write:path:{path}")
    assert conflict(claim, here("read:path:quite/another"))
    assert conflict(here("read:path:quite/another"), claim)


@pytest.mark.parametrize("path", INCOMPARABLE)
def test_a_pattern_stays_within_its_checkout(path: str) -> None:
    assert not conflict(here(f"write:path:{path}"), there("write:path:a"))


@pytest.mark.parametrize("path", LEADING_OUT)
@pytest.mark.parametrize("other", ["path:a", "workspace", "git-index", "git-ref:main"])
def test_a_path_that_may_lead_out_overlaps_the_content_of_every_checkout(
    path: str, other: str
) -> None:
    assert conflict(here(f"write:path:{path}"), there(f"write:{other}"))
    assert not conflict(here(f"write:path:{path}"), here("write:build-cache:c"))


@pytest.mark.parametrize(
    ("one", "other", "excludes"),
    [
        ("read", "read", False),
        ("read", "write", True),
        ("read", "exclusive", True),
        ("write", "write", True),
        ("write", "exclusive", True),
        ("exclusive", "exclusive", True),
    ],
)
def test_readers_share_and_everybody_else_excludes(
    one: str, other: str, excludes: bool
) -> None:
    left, right = here(f"{one}:path:src"), here(f"{other}:path:src")
    assert conflict(left, right) is excludes
    assert conflict(right, left) is excludes


@pytest.mark.parametrize("mode", MODES)
def test_two_release_claims_always_conflict(mode: str) -> None:
    assert conflict(here(f"{mode}:release:1"), here("read:release:2"))


@pytest.mark.parametrize("family", [name for name in FAMILIES if name != "release"])
def test_a_release_bars_every_claim_that_is_no_read(family: str) -> None:
    barrier = here("read:release:1")
    assert not conflict(barrier, there(f"read:{family}:x"))
    assert conflict(barrier, there(f"write:{family}:x"))
    assert conflict(there(f"exclusive:{family}:x"), barrier)


@given(CLAIMS, CLAIMS)
def test_conflict_and_overlap_are_the_same_from_both_sides(
    one: Claim, other: Claim
) -> None:
    assert overlap(one, other) == overlap(other, one)
    assert conflict(one, other) == conflict(other, one)


@given(CLAIMS)
def test_a_resource_overlaps_itself(claim: Claim) -> None:
    assert overlap(claim, claim)


@given(CLAIMS, CLAIMS)
def test_a_stronger_mode_never_conflicts_less(one: Claim, other: Claim) -> None:
    by_mode = [
        conflict(Claim(mode, one.family, one.rest, one.checkout), other)
        for mode in MODES
    ]
    assert by_mode == sorted(by_mode)


def test_of_one_resource_the_strongest_mode_is_kept() -> None:
    texts = ["read:path:a", "exclusive:path:a", "write:path:a", "read:path:b"]
    assert strongest(map(here, texts)) == (
        here("exclusive:path:a"),
        here("read:path:b"),
    )


@given(st.lists(CLAIMS, max_size=12))
def test_strongest_names_each_resource_once_and_loses_none(claims: list[Claim]) -> None:
    kept = strongest(claims)
    keys = [(claim.family, claim.rest, claim.checkout) for claim in kept]
    assert sorted(set(keys)) == sorted(keys)
    assert set(keys) == {(c.family, c.rest, c.checkout) for c in claims}
    assert set(kept) <= set(claims)
    assert strongest(reversed(claims)) == kept == strongest(kept)


@given(st.lists(CLAIMS, max_size=6), st.lists(CLAIMS, max_size=6))
def test_first_conflict_is_the_first_wanted_claim_that_is_not_free(
    wanted: list[Claim], held: list[Claim]
) -> None:
    blocked = [one for one in wanted if any(conflict(one, other) for other in held)]
    assert first_conflict(wanted, iter(held)) == (blocked[0] if blocked else None)
