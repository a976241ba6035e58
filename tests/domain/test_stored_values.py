"""Small values as they are stored, named and shown: every field where it belongs."""

from __future__ import annotations

import msgspec
import pytest

from forge_actors.domain.capacity import Limits
from forge_actors.domain.changes import JobAdded, WorktreeChanged
from forge_actors.domain.claims import Claim
from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.clock_steps import shifted
from forge_actors.domain.effects import job_of
from forge_actors.domain.epic import places
from forge_actors.domain.errors import InvalidInput, StaleFence
from forge_actors.domain.events import Event, limits_in_force
from forge_actors.domain.git_status import GitStatus
from forge_actors.domain.github.places import is_loopback
from forge_actors.domain.isolation import inherited, own_session, own_worktree
from forge_actors.domain.jobs import JobSpec
from forge_actors.domain.looking import Look, Mark, look_from
from forge_actors.domain.maintenance import CleanResult
from forge_actors.domain.metrics import Family, Histogram, counter, gauge
from forge_actors.domain.projections import attention_in
from forge_actors.domain.relocation import Relocation
from forge_actors.domain.requests import JobRequest, refuse_work
from forge_actors.domain.rounds import Turn, in_turn, plain
from forge_actors.domain.templates import TemplateLine
from forge_actors.domain.triggers import Every, Once
from forge_actors.domain.webhooks import check_hook_name, fingerprint
from forge_actors.domain.workflow_records import unreadable
from forge_actors.domain.worktrees import Isolation, Worktree
from forge_actors.testing.made_changes import job


def test_a_look_is_read_as_it_was_written() -> None:
    status = GitStatus("main", "c" * 40, staged=2)
    row = ("app", msgspec.json.encode(status), 5.0, 1, 7, 3, 6.0)
    found = look_from((*row, 4, "it moved", 8.0, "commit", 2, "git failed", 9.0))
    assert found == Look(
        "app",
        status=status,
        sampled_at=5.0,
        busy=True,
        fence=7,
        nonce=3,
        looked_at=6.0,
        dirty=Mark(4, "it moved", 8.0, "commit"),
        failures=2,
        error="git failed",
        retry_at=9.0,
    )
    never = ("app", None, None, 0, 0, 0, 0.0, None, None, None, None, 0, None, None)
    assert look_from(never) == Look("app")


def test_moments_of_a_change_are_moved_and_of_what_others_told_are_not() -> None:
    added = job("a")
    moved = shifted(added, 100.0)
    assert isinstance(moved, JobAdded)
    assert moved.job.queued_at == added.job.queued_at + 100.0
    assert moved.details.created_at == added.details.created_at + 100.0
    assert moved.event is not None
    assert added.event is not None
    assert moved.event.at == added.event.at + 100.0
    assert moved.job.retry_at is None
    assert moved.spec == added.spec
    tree = Worktree("a", "repo", "p", "b", 7.0)
    change = shifted(WorktreeChanged(tree, Event("x", 1.0, "repo")), 100.0)
    assert change.worktree == tree
    assert change.event is not None
    assert change.event.at == 101.0


def test_limits_that_are_in_force_are_told_with_each_number() -> None:
    limits = Limits({"workers": 4}, 3, pressure_workers=2, overtake_after=60.0)
    event = limits_in_force(limits, 5, 9.0)
    assert (event.kind, event.at, event.repo, event.job) == ("limits", 9.0, None, None)
    assert event.data == {
        "tokens": {"workers": 4},
        "active_repositories": 3,
        "repository_workers": 5,
        "pressure_workers": 2,
        "overtake_after": 60.0,
    }


def test_a_metric_of_one_number_has_no_labels() -> None:
    assert gauge("n", "help", 2.0) == Family("n", "gauge", "help", (), {(): 2.0}, {})
    assert counter("n", "h", 3.0) == Family("n", "counter", "h", (), {(): 3.0}, {})


def test_a_histogram_counts_up_to_each_bound() -> None:
    found = Histogram((1.0, 5.0))
    for value in (0.5, 1.0, 1.5, 5.0, 6.0):
        found.add(value)
    assert found.up_to() == [(1.0, 2), (5.0, 4), (float("inf"), 5)]
    assert (found.count, found.sum) == (5, 14.0)


def test_a_session_and_a_worktree_are_claims_of_their_own() -> None:
    assert own_session("s") == Claim("write", "session", "s")
    assert own_worktree("a") == Claim("write", "worktree", "a")
    claims = (own_worktree("a"), own_session("s"))
    assert set(inherited(claims, "a", "b")) == {own_worktree("b"), own_session("s")}


def test_a_clean_up_is_shown_with_its_sums() -> None:
    result = CleanResult(
        reports=[
            ClassReport("logs", removed=1, bytes=10, failed=2, error="busy"),
            ClassReport("jobs", removed=3, bytes=5),
        ]
    )
    view = result.view()
    assert (view["removed"], view["bytes"], view["failed"]) == (4, 15, 2)
    assert (view["dry_run"], view["error"]) == (False, None)
    assert [each["clean_class"] for each in view["reports"]] == [  # type: ignore[attr-defined]
        *("logs", "jobs")
    ]
    assert result.failure == "logs: busy"


def test_a_stale_fence_names_the_attempt() -> None:
    error = StaleFence("a", 2, 7)
    assert (error.job, error.attempt, error.fence) == ("a", 2, 7)
    assert str(error).startswith(f"{StaleFence.code}: attempt 2 with the fence 7 is")
    assert str(error).endswith("of job a")


def test_files_of_epics_have_places_of_their_own() -> None:
    own = "forge-actors"
    assert places.worker_home(7) == (own, "issues", "7", "state", "runtime")
    assert places.worktree(7) == (own, "worktrees", "7")
    assert places.settings(7) == (own, "epics", "7", "settings.json")
    assert places.path("/r/", places.worktree(7)) == "/r/forge-actors/worktrees/7"
    assert places.within(places.worktree(7), ("a", "b")) == (
        *(own, "a", "b"),
        *("worktrees", "7"),
    )


def test_what_is_started_moves_with_its_repository() -> None:
    there = Relocation("/a/app", "/b/app")
    claims = (Claim("write", "path", "src", "/a/app"),)
    isolation = Isolation(branch="x", claims=claims)
    spec = JobSpec(("true",), "/a/app/x", stdin="/a/app/in", isolation=isolation)
    moved = there.spec(spec)
    assert (moved.argv, moved.cwd, moved.stdin) == (("true",), "/b/app/x", "/b/app/in")
    assert moved.isolation == Isolation(branch="x", claims=there.claims(claims))
    assert moved.isolation != isolation
    bare = there.spec(JobSpec(("true",), "/c", isolation=Isolation()))
    assert (bare.cwd, bare.stdin, bare.isolation) == ("/c", None, Isolation())


def test_nobody_outside_says_which_work_a_job_is_of() -> None:
    free, bound = JobRequest("app", ["true"]), JobRequest("app", ["true"], work="w")
    refuse_work([free, free])
    for requests, field in (([bound], "work"), ([free, bound], "jobs[1].work")):
        with pytest.raises(InvalidInput) as error:
            refuse_work(requests)
        assert error.value.field == field


def test_jobs_that_need_somebody_are_counted_by_their_state() -> None:
    assert attention_in({"human_attention_required": 2, "succeeded": 5}) == 2
    assert attention_in({"succeeded": 5}) == 0


def test_a_line_of_a_batch_becomes_the_job_of_its_template() -> None:
    line = TemplateLine("t", "app", {"a": 1}, name="n", labels=["x"], priority="P1")
    request = JobRequest("other", ["true"], origin="cli")
    wish = line.wish(request)
    assert (wish.repo, wish.values) == ("other", {"a": 1})
    assert wish.job == {"name": "n", "labels": ["x"], "priority": "P1"}
    assert (wish.origin, wish.parent) == ("cli", request.parent)


@pytest.mark.parametrize("name", ["a", "a" * 64, "a.b_c-1"])
def test_a_webhook_has_a_plain_name(name: str) -> None:
    check_hook_name(name, field="f")


@pytest.mark.parametrize("name", ["", "A", "a b", "a" * 65, "é"])
def test_any_other_name_of_a_webhook_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 64") as error:
        check_hook_name(name, field="f")
    assert error.value.field == "f"


def test_two_urls_are_told_apart_and_not_shown() -> None:
    assert len(fingerprint("https://a/secret")) == 8
    assert fingerprint("https://a/secret") != fingerprint("https://a/secret2")
    assert (is_loopback("http://127.0.0.1:1/"), is_loopback("https://x/")) == (
        *(True, False),
    )


def test_small_words() -> None:
    assert (str(Once(5.0)), str(Every(90.0))) == ("once", "every 90s")
    assert (job_of("job:a"), job_of("cli")) == ("a", None)


def test_a_turn_is_a_job_like_any_other_without_it() -> None:
    request = JobRequest("app", ["true"], name="n", labels=["x"])
    turn = Turn("act", 1, 1, 8)
    assert in_turn(request, turn).turn == turn
    assert plain(in_turn(request, turn)) == request


def test_a_workflow_that_cannot_be_read_stands_for_itself() -> None:
    found = unreadable("w1", "it is none")
    assert (found.id, found.name, found.kind) == ("w1", "w1", "unknown")
    assert (found.digest, found.made, found.ended) == ("", 0.0, 0.0)
    assert (found.state, found.why) == ("quarantined", "it is none")
