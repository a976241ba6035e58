"""Sightings: what is news in what is seen, and what is not."""

from __future__ import annotations

from msgspec import structs

from forge_actors.domain.causes import AllOf, Ended, Jobs, Traits
from forge_actors.domain.git_status import GitStatus
from forge_actors.domain.looking import Look
from forge_actors.domain.sightings import (
    MAX_CHAIN,
    CommitSeen,
    End,
    EndsSeen,
    LookSeen,
    RefsSeen,
    cause_of,
    comes_of,
    heeds,
    missing,
    read,
    see_commit,
    see_end,
    see_look,
    see_refs,
    written,
)
from forge_actors.domain.triggers import Window

A, B, C = ("a" * 40, "b" * 40, "c" * 40)


def end(seq: int, name: str, state: str = "succeeded") -> End:
    return End(seq, state, 9.0, Traits(f"job{seq}", "check", name))  # type: ignore[arg-type]


def test_the_end_of_a_job_is_a_window_named_by_the_job() -> None:
    cause = Ended(Jobs("named", "build"), succeeded=True)
    assert not heeds(cause, end(1, "build", "failed"))
    assert not heeds(cause, end(1, "test"))
    assert heeds(Ended(Jobs("any")), end(1, "build", "failed"))
    seen, window = see_end(cause, EndsSeen(3), end(5, "build"))
    assert seen == EndsSeen(5)
    env = {"FORGE_CAUSE_JOB": "job5", "FORGE_CAUSE_STATE": "succeeded"}
    assert window == Window("end-job5", 9.0, "job job5 (build) has succeeded", env)
    assert cause_of("end-job5") == "job5"
    assert cause_of("every-3-100") is None


def test_all_have_to_succeed_since_the_last_time() -> None:
    cause = AllOf((Jobs("named", "a"), Jobs("named", "b")))
    assert not heeds(cause, end(1, "a", "failed"))
    seen, window = see_end(cause, EndsSeen(0), end(1, "a"))
    assert (window, missing(cause, seen)) == (None, ["b"])
    seen, window = see_end(cause, seen, end(2, "a"))
    assert window is None
    again, first = see_end(cause, read(written(seen), EndsSeen) or seen, end(3, "b"))
    assert first is not None
    assert (again, cause_of(first.key)) == (EndsSeen(3), "job3")
    # From the same ends the same window, from others another.
    assert see_end(cause, seen, end(3, "b"))[1] == first
    again, window = see_end(cause, again, end(4, "b"))
    assert (window, missing(cause, again)) == (None, ["a"])
    _, second = see_end(cause, again, end(5, "a"))
    assert second is not None
    assert second.key != first.key


def test_what_a_schedule_has_done_does_not_count_for_it() -> None:
    jobs = {
        "own": Traits("own", "check", origin="schedule:a"),
        "child": Traits("child", "check", origin="job:own"),
        "answer": Traits("answer", "check", origin="schedule:b"),
        "timed": Traits("timed", "check", origin="schedule:c"),
        "mine": Traits("mine", "check", origin="cli"),
        "orphan": Traits("orphan", "check", origin="job:gone"),
        "loop": Traits("loop", "check", origin="job:loop"),
        "step": Traits("step", "check", origin="workflow:w", began="job:own"),
        "other": Traits("other", "check", origin="workflow:w", began="cli"),
    }
    keys = {"answer": "all-0123-child", "timed": "cron-100"}

    def own(name: str) -> bool:
        return comes_of("a", jobs[name], jobs.get, keys.get)

    assert own("own")
    assert own("child")
    assert own("answer"), "another schedule only answered"
    assert not own("timed")
    assert not own("mine")
    assert not own("orphan")
    assert own("step"), "its job began the workflow"
    assert not own("other")
    assert own("loop"), f"nobody looks further back than {MAX_CHAIN}"


def test_a_checkout_becomes_clean_once() -> None:
    dirty = Look("r", GitStatus("main", A, untracked=1), nonce=1)
    clean = Look("r", GitStatus("main", A), nonce=2)
    assert see_look(None, None, 1.0) == (None, None)
    seen, window = see_look(None, dirty, 1.0)
    assert (seen, window) == (LookSeen(1, clean=False), None)
    assert see_look(seen, dirty, 1.0) == (seen, None)
    now, window = see_look(seen, clean, 5.0)
    env = {"FORGE_CAUSE_COMMIT": A}
    reason = f"the checkout is clean at {'a' * 12}"
    assert window == Window("clean-2", 5.0, reason, env)
    assert see_look(now, structs.replace(clean, nonce=3), 6.0) == (now, None)
    assert see_look(now, structs.replace(dirty, nonce=4), 6.0)[1] is None


def test_a_branch_that_moves_to_and_fro_moves_each_time() -> None:
    seen, none = see_refs(None, {"main": A}, 1.0)
    assert none == []
    keys = set()
    for commit in (B, A, B):
        seen, [window] = see_refs(seen, {"main": commit}, 1.0)
        keys.add(window.key)
        assert see_refs(seen, {"main": commit}, 2.0) == (seen, [])
    assert len(keys) == 3
    assert window.cause == f"branch main moved from {'a' * 12}, at {'b' * 12}"
    assert window.env == {
        "FORGE_CAUSE_BRANCH": "main",
        "FORGE_CAUSE_COMMIT": B,
        "FORGE_CAUSE_BEFORE": A,
    }
    seen, told = see_refs(seen, {"main": B, "new": C}, 1.0)
    assert [each.cause for each in told] == [f"branch new is new, at {'c' * 12}"]
    seen, told = see_refs(seen, {"new": C}, 1.0)
    assert (told, seen.heads) == ([], {"new": C})
    assert read(written(seen), RefsSeen) == seen


def test_files_of_a_commit_are_news_only_if_they_are_others() -> None:
    seen, window = see_commit(CommitSeen(A), B, [], 1.0)
    assert (seen, window) == (CommitSeen(B), None)
    seen, window = see_commit(seen, C, ["x", "y"], 1.0)
    assert window is not None
    assert (window.key, window.cause) == (
        f"file-1-{'c' * 12}",
        f"x and 1 more changed in {'c' * 12}",
    )
    seen, other = see_commit(seen, A, None, 1.0)
    assert other is not None
    assert "is gone" in other.cause
    assert seen == CommitSeen(A, 2)


def test_what_cannot_be_read_is_seen_anew() -> None:
    assert read("{nothing", EndsSeen) is None
    assert read(written(RefsSeen({})), EndsSeen) is None
    assert read(None, EndsSeen) is None
