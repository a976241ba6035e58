"""What of a repository's files is trusted, what differs, and what readers are told."""

from __future__ import annotations

import pytest

from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.forge_files import ForgeFile
from forge_actors.domain.trust import (
    Differs,
    Found,
    Trusted,
    TrustedFile,
    TrustNote,
    check_secrets,
    compare,
    differing,
    note,
    prefix_of,
    source_of,
    state_of,
    stored_note,
    trust_event,
)

A, B, C = ForgeFile("a.toml", "a"), ForgeFile("b.toml", "b"), ForgeFile("c.toml", "c")
OTHER_B = ForgeFile("b.toml", "B")
TRUSTED = Trusted("r1", 1, (A, B), (), 1000.0)


def test_the_files_are_compared_by_name() -> None:
    assert compare(TRUSTED, Found((A, OTHER_B, C))) == [
        TrustedFile("a.toml", "same", A.digest, "a", "a"),
        TrustedFile("b.toml", "changed", OTHER_B.digest, "B", "b"),
        TrustedFile("c.toml", "new", C.digest, "c", None),
    ]
    assert compare(TRUSTED, Found((A,)))[1] == TrustedFile(
        "b.toml", "gone", None, None, "b"
    )
    assert [each.change for each in compare(None, Found((A,)))] == ["new"]


@pytest.mark.parametrize(
    ("trusted", "found", "state"),
    [
        (None, Found(), "none"),
        (None, Found((A,)), "untrusted"),
        (None, Found(problem="a.toml is no TOML"), "untrusted"),
        (None, Found((A,), gone=True), "none"),
        (TRUSTED, Found((A, B)), "trusted"),
        (TRUSTED, Found((A, OTHER_B)), "differs"),
        (TRUSTED, Found((A, B), problem="too large"), "differs"),
        (TRUSTED, Found(gone=True), "trusted"),
    ],
)
def test_files_are_trusted_while_they_are_what_was_taken_over(
    trusted: Trusted | None, found: Found, state: str
) -> None:
    assert state_of(trusted, found) == state


def test_since_when_files_differ_is_kept_while_they_say_the_same() -> None:
    found = Found((A, OTHER_B))
    assert differing(TRUSTED, Found((A, B)), None, 5.0) is None
    seen = differing(TRUSTED, found, None, 5.0)
    assert seen == Differs(found.digest, None, ("b.toml",), 5.0)
    assert differing(TRUSTED, found, seen, 9.0) == seen
    for other in (Found((A,)), Found((A, OTHER_B), problem="too large")):
        later = differing(TRUSTED, other, seen, 9.0)
        assert later is not None
        assert later.seen == 9.0


def test_a_reader_is_told_what_is_trusted_and_what_to_do() -> None:
    command = "forge-actors repo trust app"
    assert command not in note("app", "none", (), None)
    assert command not in note("app", "trusted", (), None)
    assert note("app", "untrusted", (), None).endswith(command)
    differs = note("app", "differs", ("a.toml", "b.toml"), None)
    assert "a.toml, b.toml" in differs
    assert differs.endswith(f"{command} --show")
    broken = note("app", "differs", ("a.toml",), "no TOML")
    assert "is no TOML;" in broken
    assert "a.toml" not in broken


def test_what_is_stored_is_told_without_a_look_at_the_files() -> None:
    told = stored_note("app", TRUSTED, None)
    says = note("app", "trusted", (), None)
    moment = "1970-01-01T00:16:40Z"
    assert told.trusted_at is not None
    assert told.trusted_at[:19] == moment[:19]
    assert told == TrustNote("trusted", TRUSTED.digest, told.trusted_at, says)
    differs = Differs("d", "no TOML", ("a.toml",), 5.0)
    told = stored_note("app", TRUSTED, differs)
    assert (told.state, told.trusted) == ("differs", TRUSTED.digest)
    assert told.says == note("app", "differs", ("a.toml",), "no TOML")


def test_exactly_the_secrets_are_allowed_that_jobs_ask_for() -> None:
    check_secrets({"B", "A"}, ["A", "B"])
    check_secrets(set(), [])
    with pytest.raises(Refused, match="--secret A --secret C does"):
        check_secrets({"C", "B", "A"}, ["B"])
    with pytest.raises(InvalidInput, match="'B'") as caught:
        check_secrets({"A"}, ["A", "B"])
    assert caught.value.field == "secrets"


def test_schedules_of_a_repository_are_named_by_it() -> None:
    assert source_of("r1") == "trust:r1"
    assert [prefix_of(name) for name in ("app", "._-a.b-", "...")] == [
        "app.",
        "a.b-.",
        "repository.",
    ]
    event = trust_event("repository_trusted", "r1", "app", 5.0, {"files": 2})
    assert (event.kind, event.at, event.repo) == ("repository_trusted", 5.0, "r1")
    assert event.data == {"name": "app", "files": 2}
