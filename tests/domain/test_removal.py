from __future__ import annotations

import pytest

from forge_actors.domain.removal import (
    DISPOSABLE,
    STEPS,
    Archive,
    Content,
    KeptRef,
    Limits,
    Receipt,
    Step,
    Taken,
    Use,
    after,
    begin_with,
    is_disposable,
    may_forget,
    why_in_use,
    why_it_stays,
)


def receipt(last: Step | None = None) -> Receipt:
    made = Receipt("w", "r", "/r/.git", "worktrees/r/w", "b", 0.0)
    if last is not None:
        steps = STEPS[: STEPS.index(last) + 1]
        made.steps = [Taken(step, float(at)) for at, step in enumerate(steps)]
    return made


def test_every_step_is_followed_by_the_next_one() -> None:
    walked: list[Step] = []
    step: Step | None = STEPS[0]
    while step is not None:
        walked.append(step)
        step = after(step)
    assert tuple(walked) == STEPS


@pytest.mark.parametrize("last", [None, *STEPS])
def test_what_is_whole_is_always_looked_at_anew(last: Step | None) -> None:
    assert begin_with(receipt(last), "whole") == "looked"
    assert begin_with(None, "whole") == "looked"


def test_what_lies_aside_goes_on_only_if_its_removal_had_begun() -> None:
    assert begin_with(None, "aside") == "looked"
    for last in STEPS:
        begun = STEPS.index(last) >= STEPS.index("removing")
        expected = "removing" if begun else "looked"
        assert begin_with(receipt(last), "aside") == expected


def test_what_is_gone_is_not_believed_to_be_saved_without_a_receipt() -> None:
    assert begin_with(None, "gone") == "archived"
    assert begin_with(receipt("proven"), "gone") == "archived"
    assert begin_with(receipt("removing"), "gone") == "branch"


def test_what_is_used_stays() -> None:
    assert why_in_use(Use()) is None
    assert why_in_use(Use("queued")) == "a job in it is queued"
    assert why_in_use(Use(None, ("7 (vim)", "8 (sh)"))) == "process 7 (vim) uses it"


def test_force_gives_up_only_what_is_ignored() -> None:
    limits = Limits(archive_bytes=10)
    assert why_it_stays(Content(), limits, force=False) is None
    ignored = Content(ignored_bytes=11)
    assert "ignored files have 11 bytes" in (
        why_it_stays(ignored, limits, force=False) or ""
    )
    assert why_it_stays(ignored, limits, force=True) is None
    large = Content(uncommitted_bytes=6, nested_bytes=5)
    assert "not committed in it has 11 bytes" in (
        why_it_stays(large, limits, force=False) or ""
    )
    unreadable = Content(unreadable="x: is of another user")
    assert why_it_stays(unreadable, limits, force=True) == "x: is of another user"


@pytest.mark.parametrize("path", ["a/node_modules/b", ".venv/x", "m.pyc", "target"])
def test_what_can_be_made_again_is_known_by_any_part_of_its_path(path: str) -> None:
    assert is_disposable(path, DISPOSABLE)


@pytest.mark.parametrize(
    "path", ["results.csv", "targets/x", "data/model.bin", "build"]
)
def test_what_may_be_valuable_is_not_disposable(path: str) -> None:
    assert not is_disposable(path, DISPOSABLE)


def test_the_only_copy_of_work_stays_for_ever_unless_its_owner_says_so() -> None:
    made = receipt("closed")
    assert may_forget(made, elsewhere=False, unmerged_too=False) is None
    made.refs = [KeptRef("refs/forge-actors/kept/w/head", "c")]
    assert may_forget(made, elsewhere=True, unmerged_too=False) is None
    assert may_forget(made, elsewhere=False, unmerged_too=False) is not None
    assert may_forget(made, elsewhere=False, unmerged_too=True) is None
    made.archives = [Archive("files", "files.tar", "", 1, 1)]
    assert may_forget(made, elsewhere=True, unmerged_too=False) is not None
    assert may_forget(receipt("removed"), elsewhere=True, unmerged_too=True) is not None
