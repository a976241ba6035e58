"""What the inbox has of controllers, workflows, EPICs and files to be trusted."""

from __future__ import annotations

from typing import Any

import msgspec

from forge_actors.domain.controller_items import waiting_items
from forge_actors.domain.controllers import Controller, Limits
from forge_actors.domain.epic.runs import EpicRequest, EpicRun
from forge_actors.domain.epic.views import ChildView, EpicView
from forge_actors.domain.epic_items import MAX_SAID, epic_items
from forge_actors.domain.trust import Differs
from forge_actors.domain.trust_items import differing_item
from forge_actors.domain.workflow_items import asking_item, needing_item
from forge_actors.domain.workflow_steps import Step, Workflow

SECRET = "ghp_" + "a1B2" * 9


def moment(at: float) -> str:
    return f"at {at:.0f}"


def body(value: object) -> bytes:
    return msgspec.json.encode(value)


def test_a_controller_that_waits_says_how_it_goes_on() -> None:
    kept = Controller(
        *("c1", "night", "r", "host", {}, "", Limits(), "j7", 1.0),
        state="paused",
        why=f"it said {SECRET}",
        since=1234.6,
        rounds=3,
    )
    quarantined = msgspec.structs.replace(
        kept, state="quarantined", why=None, job=None, since=0.0
    )
    item, other = waiting_items(
        [("c1", "night", body(kept)), ("c1", "night", body(quarantined))], moment
    )
    assert (item.id, item.since) == ("controller:c1:1235", "at 1235")
    assert item.kind == "controller"
    assert (item.repo, item.job) == (None, "j7")
    assert item.evidence == {"controller": "night", "turns": "3", "job": "j7"}
    assert item.actions == [
        "forge-actors controller show night",
        "forge-actors logs j7",
        "forge-actors controller resume night",
        "forge-actors inbox dismiss controller:c1:1235",
    ]
    assert "controller night " in item.says
    assert SECRET not in item.says
    assert (other.id, other.since, other.job) == ("controller:c1:0", None, None)
    assert other.evidence == {"controller": "night", "turns": "3"}
    assert other.actions[1:] == [
        "forge-actors controller remove night",
        "forge-actors inbox dismiss controller:c1:0",
    ]
    assert "does not say why" in other.says


def test_what_is_stored_of_a_controller_need_not_be_readable() -> None:
    [item] = waiting_items([("c1", "night", b"{")], moment)
    assert item.id == "controller:c1:0"
    assert "cannot be used" in item.says
    assert "forge-actors controller remove night" in item.actions


def test_a_step_that_asks_is_another_item_each_time() -> None:
    step = Step("check", 2, "asking", why=f"publish? {SECRET}", began=50.0)
    item = asking_item(("w1", "release", body(step)), moment)
    assert (item.id, item.since) == ("workflow:w1:check:50", "at 50")
    assert item.kind == "workflow"
    assert (item.repo, item.job) == (None, None)
    assert item.evidence == {"workflow": "w1", "step": "check"}
    assert item.actions == [
        "forge-actors workflow show w1",
        "forge-actors workflow approve w1 check",
        "forge-actors workflow deny w1 check",
    ]
    assert "check" in item.says
    assert "release" in item.says
    assert "publish?" in item.says
    assert SECRET not in item.says
    unbegun = asking_item(("w1", "release", body(Step("check", 2))), moment)
    assert (unbegun.id, unbegun.since) == ("workflow:w1:check", None)
    assert unbegun.says.endswith("asks: ")


def test_a_workflow_that_stopped_needs_somebody_until_it_is_seen_to() -> None:
    header = Workflow("w1", "release", "plain", "", 1.0, "failed", "too much", 90.0)
    item = needing_item(("w1", "release", body(header)), moment)
    assert (item.id, item.kind, item.since) == ("workflow:w1:90", "workflow", "at 90")
    assert (item.repo, item.job) == (None, None)
    assert item.evidence == {"workflow": "w1"}
    assert item.actions == [
        "forge-actors workflow show w1",
        "forge-actors workflow retry w1",
        "forge-actors inbox dismiss workflow:w1:90",
    ]
    assert item.says == "workflow release needs somebody: too much"
    silent = msgspec.structs.replace(header, why=None, ended=None)
    item = needing_item(("w1", "release", body(silent)), moment)
    assert (item.id, item.since) == ("workflow:w1", None)
    assert item.says.endswith(": failed")
    item = needing_item(("w1", "release", b"["), moment)
    assert (item.id, item.since) == ("workflow:w1", None)
    assert "read" in item.says


def test_files_that_were_changed_are_another_item_for_each_content() -> None:
    differs = Differs("0123456789abcdef", None, ("a.toml", "b.toml"), 7.0)
    item = differing_item("r1", "app", body(differs), moment)
    assert (item.id, item.kind) == ("trust:r1:0123456789ab", "trust")
    assert (item.since, item.repo, item.job) == ("at 7", "app", None)
    assert item.evidence == {"files": "a.toml b.toml"}
    assert item.actions == [
        "forge-actors repo trust app --show",
        "forge-actors repo trust app",
        "forge-actors inbox dismiss trust:r1:0123456789ab",
    ]
    assert ".toml of app" in item.says
    broken = Differs("0123456789abcdef", "a.toml is no TOML", (), 7.0)
    assert "a.toml is no TOML" in differing_item("r1", "app", body(broken), moment).says


def run(**fields: Any) -> EpicRun:
    about: dict[str, Any] = {"state": "ended", "why": "no place", "ended": 30.0}
    request = EpicRequest("https://x/o/r/issues/1", "app one")
    return EpicRun("e1", request, "r1", "cli", 1.0, **about | fields)


def seen(*children: ChildView) -> EpicView:
    return EpicView("o/r", 1, "all", "finished", children, {}, reason="a disk is full")


def test_a_run_that_ended_early_tells_how_to_begin_another() -> None:
    [item] = epic_items([("e1", "app one", body(run()))], moment)
    assert (item.id, item.kind, item.since) == ("epic:e1", "epic", "at 30")
    assert (item.repo, item.job) == ("app one", None)
    assert item.evidence == {"run": "e1", "reason": "it could not go on"}
    assert item.actions == [
        "forge-actors epic status e1",
        "forge-actors epic run --detach --repo 'app one' https://x/o/r/issues/1",
        "forge-actors inbox dismiss epic:e1",
    ]
    assert "https://x/o/r/issues/1" in item.says
    assert item.says.endswith("no place")
    degraded = run(reason="degraded", last=seen(), ended=None)
    [item] = epic_items([("e1", None, body(degraded))], moment)
    assert item.says.endswith("a disk is full")
    assert (item.since, item.evidence["reason"]) == (None, "degraded")
    assert "--repo r1 " in item.actions[1]
    [item] = epic_items([("e1", None, body(run(reason="degraded")))], moment)
    assert item.says.endswith("no place")
    long = epic_items([("e1", None, body(run(why="x" * 600)))], moment)
    assert len(long[0].says) == MAX_SAID
    assert epic_items([("e1", None, body(run(reason="done")))], moment) == []


def test_each_issue_that_waits_for_a_person_is_an_item() -> None:
    stuck = ChildView(
        *(5, "Save", "held", "held:failed"),
        phase="failed",
        generation=2,
        branch="epic/5",
        job="j5",
    )
    unclear = ChildView(6, "Load", "held", "uncertain: torn")
    blocked = ChildView(7, "Go", "held", "", phase="blocked", detail="needs a key")
    fine = ChildView(8, "Stay", "held", "held:later", phase="failed")
    fine = msgspec.structs.replace(fine, state="done")
    last = seen(stuck, unclear, blocked, fine)
    rows = [("e1", "app", body(run(reason="done", last=last)))]
    first, second, third = epic_items(rows, moment)
    assert (first.id, first.kind, first.since) == ("epic:e1:5.2", "epic", "at 30")
    assert (first.repo, first.job) == ("app", "j5")
    assert first.evidence == {
        "run": "e1",
        "issue": "#5",
        "branch": "epic/5",
        "phase": "failed",
        "reason": "held:failed",
    }
    assert first.actions == [
        "forge-actors epic status e1",
        "forge-actors logs j5",
        "forge-actors inbox dismiss epic:e1:5.2",
    ]
    assert first.says == "issue #5 of o/r has failed: failed (Save)"
    assert (second.id, second.job) == ("epic:e1:6.0", None)
    assert second.says == "issue #6 of o/r is uncertain: torn (Load)"
    assert second.evidence.keys() == {"run", "issue", "reason"}
    assert len(second.actions) == 2
    assert third.says == "issue #7 of o/r is blocked: needs a key (Go)"
    rows = [("e1", "app", body(run(reason="done", last=last, ended=None)))]
    assert {item.since for item in epic_items(rows, moment)} == {None}


def test_a_run_that_nobody_can_read_is_an_item_and_hides_no_other() -> None:
    first, second = epic_items([("e0", None, b"{"), ("e1", "a", body(run()))], moment)
    assert (first.id, first.kind, first.since) == ("epic:e0", "epic", None)
    assert (first.repo, first.job, first.evidence) == (None, None, {"run": "e0"})
    assert first.actions == [
        "forge-actors jobs --work e0",
        "forge-actors inbox dismiss epic:e0",
    ]
    assert "e0" in first.says
    assert "what is stored of it" in first.says
    assert second.id == "epic:e1"
