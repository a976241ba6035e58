"""An EPIC and its issues as readers see them: each field, from what there is of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from forge_actors.domain.epic.graph import (
    CLOSED,
    OPEN,
    BlockerNode,
    ChildNode,
    EpicNode,
    RepositoryNode,
    Snapshot,
)
from forge_actors.domain.epic.namespace import Namespace
from forge_actors.domain.epic.namespace import Saved as SavedState
from forge_actors.domain.epic.plan_file import PLAN_HOST
from forge_actors.domain.epic.records import (
    AdmissionStatus,
    Invocation,
    SnapshotSummary,
)
from forge_actors.domain.epic.runs import with_jobs
from forge_actors.domain.epic.verdicts import Verdict
from forge_actors.domain.epic.views import (
    MAX_TITLE,
    ChildView,
    child_view,
    counts_of,
    epic_view,
    kept_view,
    recorded_view,
    title,
    told,
)
from forge_actors.domain.github.places import IssueAt, Place
from forge_actors.testing.epic.records import (
    DIGEST,
    made_claim,
    made_closed,
    made_scheduler,
    made_state,
    made_worker,
    moment,
)

if TYPE_CHECKING:
    from forge_actors.domain.epic.records import Phase, Scheduler

HERE = Place("github.com", "octo", "demo")
ELSEWHERE = Place("github.com", "octo", "other")
SECRET = "ghp_" + "a1B2" * 9
SEEN = SnapshotSummary(DIGEST, moment(30), 21, 1, 2, 3, 4, 5, 6)


def waits_for(number: int, id_: int, place: Place = HERE) -> BlockerNode:
    return BlockerNode(IssueAt(place, number), id_, OPEN)


def child(number: int, *blockers: BlockerNode, **fields: Any) -> ChildNode:
    at = IssueAt(HERE, number)
    known = {"state": OPEN, "title": f"Issue {number}", **fields}
    return ChildNode(9000 + number, at, blockers=blockers, **known)


def saved(phase: Phase, **changes: Any) -> SavedState:
    state = structs.replace(made_state(3, phase), **changes)
    return SavedState(b"{}", state)


def verdict(kind: Any, reason: str) -> Verdict:
    return Verdict(3, 9003, kind, reason)


def snapshot(*children: ChildNode, place: Place = HERE) -> Snapshot:
    epic = EpicNode(9007, IssueAt(place, 7), OPEN, f"All {SECRET}")
    at = RepositoryNode(101, place)
    return Snapshot(DIGEST, moment(20), at, epic, children)


def record(**changes: Any) -> Scheduler:
    return structs.replace(made_scheduler(), **changes)


def test_an_issue_of_which_nothing_is_kept_is_what_its_verdict_says() -> None:
    elsewhere = waits_for(5, 70, ELSEWHERE)
    node = child(3, waits_for(1, 9001), elsewhere, waits_for(4, 9004))
    view = child_view(node, verdict("blocked", "blocked:#1"), None)
    assert view == ChildView(3, "Issue 3", "blocked", "blocked:#1", (1, 4))
    running = child_view(child(3), verdict("owned", "owned"), None, running=True)
    assert running == ChildView(3, "Issue 3", "running", "owned")


@pytest.mark.parametrize(
    ("phase", "kind", "state"),
    [
        ("done", "held", "done"),
        ("ready_for_merge", "held", "done"),
        ("failed", "held", "held"),
        ("blocked", "held", "held"),
        ("done", "closed", "closed"),
        ("done", "ready", "ready"),
    ],
)
def test_one_that_is_held_as_its_work_is_done_is_done(
    phase: Phase, kind: str, state: str
) -> None:
    kept = Namespace(3, saved=saved(phase))
    view = child_view(child(3, title="A"), verdict(kind, "why"), kept)
    assert (view.title, view.state, view.reason, view.phase) == (
        *("A", state, "why"),
        phase,
    )


def test_an_issue_without_anything_on_the_disk_has_no_worker() -> None:
    bare = ChildView(3, "", "held", "no worker has it")
    assert kept_view(Namespace(3)) == bare
    busy = structs.replace(bare, state="running", reason="a worker has it")
    assert kept_view(Namespace(3), busy=True) == busy


def test_what_a_worker_has_saved_says_how_far_it_is() -> None:
    view = kept_view(Namespace(3, saved=saved("review")))
    goes_on = "the next run goes on with it"
    assert view == ChildView(3, "", "held", goes_on, phase="review", branch="forge/3")
    told = kept_view(Namespace(3, saved=saved("blocked", detail="a test fails")))
    assert (told.state, told.reason) == ("held", "settled:blocked")
    assert (told.phase, told.detail) == ("blocked", "a test fails")
    done = kept_view(Namespace(3, saved=saved("done")))
    assert (done.state, done.reason) == ("done", "settled:done")


def test_its_last_claim_says_who_works_on_it_and_how_that_ended() -> None:
    claims = (made_claim(3), made_claim(3, 2))
    view = kept_view(Namespace(3, claims=claims))
    assert view == ChildView(3, "", "held", "no worker has it", generation=2)
    worker = made_worker()
    noted = structs.replace(claims[1], worker=worker, closed=made_closed("settled"))
    view = kept_view(Namespace(3, claims=(claims[0], noted)))
    assert (view.generation, view.closed, view.reason) == (
        *(2, "settled"),
        "no worker has it",
    )
    assert (view.pid, view.log) == (worker.pid, worker.log)
    given_up = made_claim(3, closed=made_closed("abandoned"))
    view = kept_view(Namespace(3, saved=saved("check"), claims=(given_up,)))
    assert (view.closed, view.reason) == ("abandoned", "it ended")
    broken = Namespace(3, claims=(given_up,), problem="it is no claim record")
    assert kept_view(broken).reason == "uncertain: it is no claim record"


def test_a_title_is_cut_and_has_no_secret() -> None:
    assert len(title("x" * (MAX_TITLE + 1))) == MAX_TITLE
    assert SECRET not in title(SECRET)
    assert "\x1b" not in title("\x1b[2Jred")
    assert told(HERE) == "octo/demo"
    assert told(Place(PLAN_HOST, "plan", "release")) == "plan release"


def test_a_graph_without_a_run_is_planned() -> None:
    graph = snapshot(child(1, waits_for(2, 9002)), child(2, waits_for(1, 9001)))
    shown = (ChildView(1, "", "blocked", ""), ChildView(2, "", "blocked", ""))
    view = epic_view(graph, iter(shown), None)
    assert (view.repository, view.number, view.state) == ("octo/demo", 7, "planned")
    assert "All" in view.title
    assert SECRET not in view.title
    assert (view.children, view.counts) == (shown, {"blocked": 2})
    assert (view.observed_at, view.cycles) == (moment(20), ((1, 2),))
    assert (view.invocation, view.verdicts, view.max_parallel) == (None, None, None)


def test_a_circle_through_what_counts_as_done_is_none() -> None:
    closed = BlockerNode(IssueAt(HERE, 2), 9002, CLOSED, "not_planned")
    graph = snapshot(child(1, closed), child(2, waits_for(1, 9001)))
    assert epic_view(graph, (), None).cycles == ((1, 2),)
    assert epic_view(graph, (), None, satisfied_by=("not-planned",)).cycles == ()


def test_a_graph_with_its_run_says_what_that_is_at() -> None:
    run = record(
        admission=AdmissionStatus("closed", "stop-requested"), last_snapshot=SEEN
    )
    view = epic_view(snapshot(child(1)), (), run)
    assert (view.state, view.invocation) == ("running", "i-00000001")
    assert (view.admission, view.reason) == ("closed", "stop-requested")
    assert (view.end_reason, view.started_at, view.ended_at) == (None, moment(0), None)
    assert view.observed_at == moment(20)
    assert view.max_parallel == 3
    assert view.verdicts == {
        "ready": 1,
        "blocked": 2,
        "closed": 3,
        "unsupported": 4,
        "owned": 5,
        "held": 6,
    }


def test_the_files_alone_say_what_became_of_a_run() -> None:
    shown = [ChildView(1, "", "done", ""), ChildView(2, "", "held", "")]
    view = recorded_view(record(last_snapshot=SEEN), iter(shown), alive=True)
    assert (view.repository, view.number, view.title) == ("octo/demo", 7, "")
    assert (view.state, view.observed_at) == ("running", moment(30))
    assert view.children == tuple(shown)
    assert view.counts == {"done": 1, "held": 1}
    assert view.cycles == ()
    killed = recorded_view(record(), (), alive=False, plan=True)
    assert (killed.repository, killed.state) == ("plan demo", "killed")
    assert (killed.observed_at, killed.verdicts) == (None, None)
    over = Invocation("i-00000002", moment(1), moment(90), "drained")
    for alive in (True, False):
        ended = recorded_view(record(invocation=over), (), alive=alive)
        assert (ended.state, ended.end_reason) == ("finished", "drained")
        assert (ended.started_at, ended.ended_at) == (moment(1), moment(90))


def test_the_jobs_of_issues_are_those_that_are_known() -> None:
    shown = (
        ChildView(1, "", "held", "", job="old"),
        ChildView(2, "", "held", "", job="kept"),
        ChildView(3, "", "held", ""),
    )
    view = epic_view(snapshot(), shown, None)
    jobs = [each.job for each in with_jobs(view, {1: "new", 9: "no"}).children]
    assert jobs == ["new", "kept", None]
    assert counts_of(()) == {}
