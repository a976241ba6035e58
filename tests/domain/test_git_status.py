"""What git prints of a status, read strictly and whatever files are called."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.git_status import (
    GitStatus,
    parse_status,
    read_operation,
)

OID = "a" * 40
HEAD = [f"# branch.oid {OID}", "# branch.head main"]
TRACKED = f"N... 100644 100644 100644 {OID} {OID}"


def output(*lines: str | bytes) -> bytes:
    raw = (line.encode() if isinstance(line, str) else line for line in lines)
    return b"".join(line + b"\0" for line in raw)


def parse(*lines: str | bytes) -> GitStatus:
    return parse_status(output(*lines), whole=True)


def test_a_clean_checkout() -> None:
    status = parse(*HEAD, "# branch.upstream origin/main", "# branch.ab +2 -1")
    assert status == GitStatus("main", OID, "origin/main", 2, 1)
    assert status.clean
    assert (status.detached, status.unborn) == (False, False)


def test_every_conflict_counts() -> None:
    entry = f"u UU N... 1 2 3 4 {OID} {OID} {OID}"
    assert parse(*HEAD, f"{entry} one", f"{entry} two").conflicts == 2


def test_an_upstream_that_is_gone_has_no_distance() -> None:
    status = parse(*HEAD, "# branch.upstream origin/main")
    assert (status.upstream, status.ahead, status.behind) == ("origin/main", None, None)


def test_a_branch_without_a_commit_and_a_commit_without_a_branch() -> None:
    unborn = parse("# branch.oid (initial)", "# branch.head main")
    assert unborn.unborn
    assert not unborn.detached
    detached = parse(f"# branch.oid {'b' * 64}", "# branch.head (detached)")
    assert detached.detached
    assert detached.head == "b" * 64


def test_every_kind_of_change_is_counted_where_it_is() -> None:
    status = parse(
        *HEAD,
        f"1 M. {TRACKED} staged",
        f"1 .M {TRACKED} unstaged",
        f"1 MM {TRACKED} both",
        f"2 R. {TRACKED} R100 new name",
        "1 .M this was its name before",
        f"u UU N... 1 2 3 4 {OID} {OID} {OID} conflict",
        "? new",
        "? another\nline",
        "! ignored",
    )
    counts = (status.staged, status.unstaged, status.untracked, status.conflicts)
    assert counts == (3, 2, 2, 1)
    assert not status.clean


@pytest.mark.parametrize(
    "text",
    [
        output("# branch.oid nonsense", "# branch.head main"),
        output(f"# branch.oid {OID}"),
        output(*HEAD, "x something"),
        output(*HEAD, "1 ?? something"),
        output(*HEAD) + b"? half a li",
        b"fatal: not a git repository\n",
        b"",
    ],
)
def test_what_git_never_prints_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="git status"):
        parse_status(text, whole=True)


def test_output_that_was_cut_counts_what_is_whole() -> None:
    text = output(*HEAD, "? one", "? two") + b"? thr"
    status = parse_status(text, whole=False)
    assert status.untracked == 2
    assert status.at_least
    # Cut at the end of a line it may have been about to go on all the same.
    only_head = parse_status(output(*HEAD), whole=False)
    assert not only_head.clean


@given(st.lists(st.binary(max_size=30).map(lambda name: name.replace(b"\0", b"/"))))
def test_names_of_files_never_count_as_anything_else(names: list[bytes]) -> None:
    status = parse(*HEAD, *(b"? " + name for name in names))
    assert status == GitStatus("main", OID, untracked=len(names))


def test_a_branch_that_is_no_text_is_shown_as_far_as_it_is() -> None:
    status = parse(HEAD[0], b"# branch.head caf\xe9")
    assert status.branch == "caf\N{REPLACEMENT CHARACTER}"
    long = parse(HEAD[0], "# branch.head " + "x" * 5000)
    assert long.branch == "x" * 256


def test_what_git_is_in_the_middle_of() -> None:
    assert read_operation([]) is None
    assert read_operation(["MERGE_HEAD"]) == "merge"
    assert read_operation(["CHERRY_PICK_HEAD", "rebase-merge"]) == "rebase"
    assert read_operation(["rebase-apply", "rebase-apply/applying"]) == "am"
    assert read_operation(["rebase-apply"]) == "rebase"


def test_people_are_told_of_branch_commit_and_cleanness() -> None:
    status = GitStatus("main", OID, untracked=1)
    assert not status.differs(GitStatus("main", OID, untracked=2, staged=1))
    assert status.differs(GitStatus("main", OID))
    assert status.differs(GitStatus("other", OID, untracked=1))
    assert status.differs(GitStatus("main", "b" * 40, untracked=1))
    assert status.differs(GitStatus("main", OID, untracked=1, operation="merge"))
